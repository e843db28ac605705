// Package handle numbers objects that a C program refers to, and finds them by number. A number of
// an object that no longer exists is detected instead of dereferenced. Any goroutine may use a
// table.
package handle

import (
	"errors"
	"fmt"
	"sync"
)

// ErrHandle reports that a number refers to no object, or to none that still exists. ErrHandle is wrapped with the
// cause.
var ErrHandle = errors.New("no such handle")

// Handle is a number of 64 bits: the upper 8 identify the table, the lower 56 count from 1. No
// number is used twice, and 0 is never used.
type Handle uint64

// kindShift is the position of the table's bits.
const kindShift = 56

// Table finds objects of one type by number.
type Table[T any] struct {
	kind uint8
	name string

	mu     sync.Mutex
	issued uint64
	things map[Handle]T
}

// NewTable makes a table. kind is a number above 0 that is unique among the tables of the program,
// and name is the name of its objects.
func NewTable[T any](kind uint8, name string) *Table[T] {
	return &Table[T]{kind: kind, name: name, things: make(map[Handle]T)}
}

// Add assigns the next number to an object.
func (t *Table[T]) Add(thing T) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued++
	h := Handle(uint64(t.kind)<<kindShift | t.issued)
	t.things[h] = thing
	return h
}

// Get returns an object. The error wraps ErrHandle.
func (t *Table[T]) Get(h Handle) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(h)
}

// Remove returns an object and frees the number. If several goroutines remove the same object, one
// goroutine succeeds.
func (t *Table[T]) Remove(h Handle) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thing, err := t.find(h)
	delete(t.things, h)
	return thing, err
}

// RemoveAll removes the numbers of all objects that match, and returns the objects.
func (t *Table[T]) RemoveAll(matches func(T) bool) (removed []T) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for h, thing := range t.things {
		if matches(thing) {
			delete(t.things, h)
			removed = append(removed, thing)
		}
	}
	return removed
}

// Holds reports whether a number refers to an object.
func (t *Table[T]) Holds(h Handle) bool {
	_, err := t.Get(h)
	return err == nil
}

// find returns the object of a number while the lock is held, or an error with the cause.
func (t *Table[T]) find(h Handle) (T, error) {
	thing, ok := t.things[h]
	if ok {
		return thing, nil
	}
	switch count := uint64(h) & (1<<kindShift - 1); {
	case h == 0:
		return thing, fmt.Errorf("%w: 0 is not a %s", ErrHandle, t.name)
	case uint64(h)>>kindShift != uint64(t.kind):
		return thing, fmt.Errorf("%w: %#x is not a %s", ErrHandle, uint64(h), t.name)
	case count == 0 || count > t.issued:
		return thing, fmt.Errorf("%w: %#x was never a %s", ErrHandle, uint64(h), t.name)
	default:
		return thing, fmt.Errorf("%w: %s %#x no longer exists", ErrHandle, t.name, uint64(h))
	}
}
