package ingress

// groups holds the state that the tracks of one publication share, by group number. Tracks of group 0 share nothing.
type groups struct {
	numbers map[uint64]*frameNumbers
	// instants are the capture instants of converted tracks.
	instants map[uint64]*instants
}

func newGroups() groups {
	return groups{numbers: make(map[uint64]*frameNumbers), instants: make(map[uint64]*instants)}
}

// frameNumbers returns the shared frame numbers of a group.
func (g *groups) frameNumbers(group uint64) *frameNumbers {
	numbers := g.numbers[group]
	if numbers == nil {
		numbers = &frameNumbers{}
		if group != 0 {
			g.numbers[group] = numbers
		}
	}
	return numbers
}

// captures returns the shared capture instants of the converted tracks of a group.
func (g *groups) captures(group uint64) *instants {
	captures := g.instants[group]
	if captures == nil {
		captures = &instants{}
		if group != 0 {
			g.instants[group] = captures
		}
	}
	return captures
}

// drop removes a group.
func (g *groups) drop(group uint64) {
	delete(g.numbers, group)
	delete(g.instants, group)
}

// clear removes all groups.
func (g *groups) clear() {
	clear(g.numbers)
	clear(g.instants)
}
