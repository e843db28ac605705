// Package agenda keeps what has something to do in the order of when that falls due: links of an emulated network. It has neither goroutine nor lock; an agenda belongs to
// whoever steps what stands in it.
package agenda

import (
	"container/heap"
	"time"
)

// Place is where something stands in an agenda, the zero value if it does not. What is to stand in one embeds it, and stands in one agenda at most.
type Place struct {
	due   time.Time
	index int // in the heap, counted from 1; 0 is outside
}

func (p *Place) place() *Place { return p }

// Due is when something falls due, as was set last, zero where that is unknown.
func (p *Place) Due() time.Time { return p.due }

// Item is what may stand in an agenda: a pointer to something that embeds a Place.
type Item interface{ place() *Place }

// Agenda is a heap of items by when they fall due. The zero value is empty.
type Agenda[T Item] struct{ items items[T] }

// Set says when an item falls due next; zero takes it out.
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

// Next is when the first item falls due, zero if there is none.
func (a *Agenda[T]) Next() time.Time {
	if len(a.items) == 0 {
		return time.Time{}
	}
	return a.items[0].place().due
}

// First is the first item if it has fallen due by now. It stays where it is until it is set anew.
func (a *Agenda[T]) First(now time.Time) (item T, ok bool) {
	if len(a.items) == 0 || a.items[0].place().due.After(now) {
		return item, false
	}
	return a.items[0], true
}

// items implement heap.Interface.
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
