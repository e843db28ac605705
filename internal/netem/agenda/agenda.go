// Package agenda keeps items in the order of their due times: the links of an emulated network. It has neither
// goroutine nor lock; an agenda belongs to the goroutine that steps its items.
package agenda

import (
	"container/heap"
	"time"
)

// Place is the place of an item in an agenda, zero if it is not in one. Items embed a Place, and are in one agenda at
// most.
type Place struct {
	due   time.Time
	index int // in the heap, counted from 1; 0 is outside
}

func (p *Place) place() *Place { return p }

// Due returns the due time that was set last, zero if none is set.
func (p *Place) Due() time.Time { return p.due }

// Item is a pointer to a type that embeds a Place.
type Item interface{ place() *Place }

// Agenda is a heap of items by due time. The zero value is empty.
type Agenda[T Item] struct{ items items[T] }

// Set sets the due time of an item; zero removes the item.
func (a *Agenda[T]) Set(item T, due time.Time) {
	p := item.place()
	p.due = due
	switch {
	case due.IsZero():
		if p.index != 0 {
			heap.Remove(&a.items, p.index-1)
		}
	case p.index == 0:
		heap.Push(&a.items, item)
	default:
		heap.Fix(&a.items, p.index-1)
	}
}

// Next returns the due time of the first item, zero if there is none.
func (a *Agenda[T]) Next() time.Time {
	if len(a.items) == 0 {
		return time.Time{}
	}
	return a.items[0].place().due
}

// First returns the first item if it is due by now. The item stays in its place until the next Set.
func (a *Agenda[T]) First(now time.Time) (item T, ok bool) {
	if len(a.items) == 0 || a.items[0].place().due.After(now) {
		return item, false
	}
	return a.items[0], true
}

// items implements heap.Interface.
type items[T Item] []T

func (s items[T]) Len() int { return len(s) }

func (s items[T]) Less(i, j int) bool { return s[i].place().due.Before(s[j].place().due) }

func (s items[T]) Swap(i, j int) {
	s[i], s[j] = s[j], s[i]
	s[i].place().index, s[j].place().index = i+1, j+1
}

func (s *items[T]) Push(x any) {
	*s = append(*s, x.(T))
	(*s)[len(*s)-1].place().index = len(*s)
}

func (s *items[T]) Pop() any {
	last := len(*s) - 1
	item := (*s)[last]
	var none T
	(*s)[last] = none
	*s = (*s)[:last]
	item.place().index = 0
	return item
}
