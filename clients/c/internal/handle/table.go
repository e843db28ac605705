// Package handle gives numbers to things that a C program refers to, and finds them by number, so that a number whose thing is gone is recognised
// instead of followed. A table belongs to nobody: any goroutine may use it.
package handle

import (
	"errors"
	"fmt"
	"sync"
)

// ErrHandle says that a number stands for nothing, or for nothing any more. It is wrapped with why.
var ErrHandle = errors.New("no such handle")

// Handle is a number of 64 bits: the upper 8 are the table's, the lower 56 count from 1. No number is given twice, and 0 to nothing.
type Handle uint64

// kindShift is where the table's bits begin.
const kindShift = 56

// Table finds things of one type by number.
type Table[T any] struct {
	kind uint8
	name string

	mu     sync.Mutex
	issued uint64
	things map[Handle]T
}

// NewTable makes a table. kind is a number above 0 that no other table of the program has, name what its things are called.
func NewTable[T any](kind uint8, name string) *Table[T] {
	return &Table[T]{kind: kind, name: name, things: make(map[Handle]T)}
}

// Add gives a thing the next number.
func (t *Table[T]) Add(thing T) Handle {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.issued++
	h := Handle(uint64(t.kind)<<kindShift | t.issued)
	t.things[h] = thing
	return h
}

// Get finds a thing. The error is around ErrHandle.
func (t *Table[T]) Get(h Handle) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.find(h)
}

// Remove finds a thing and forgets its number. Of several goroutines that remove the same thing, one gets it.
func (t *Table[T]) Remove(h Handle) (T, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	thing, err := t.find(h)
	delete(t.things, h)
	return thing, err
}

// RemoveAll forgets the numbers of all things that match.
func (t *Table[T]) RemoveAll(matches func(T) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for h, thing := range t.things {
		if matches(thing) {
			delete(t.things, h)
		}
	}
}

// Holds tells whether a number stands for something.
func (t *Table[T]) Holds(h Handle) bool {
	_, err := t.Get(h)
	return err == nil
}

// find looks a number up under the lock, and says what is wrong with one that stands for nothing.
func (t *Table[T]) find(h Handle) (T, error) {
	thing, ok := t.things[h]
	if ok {
		return thing, nil
	}
	switch count := uint64(h) & (1<<kindShift - 1); {
	case h == 0:
		return thing, fmt.Errorf("%w: 0 is no %s", ErrHandle, t.name)
	case uint64(h)>>kindShift != uint64(t.kind):
		return thing, fmt.Errorf("%w: %#x is no %s", ErrHandle, uint64(h), t.name)
	case count == 0 || count > t.issued:
		return thing, fmt.Errorf("%w: %#x was never a %s", ErrHandle, uint64(h), t.name)
	default:
		return thing, fmt.Errorf("%w: %s %#x is gone", ErrHandle, t.name, uint64(h))
	}
}
