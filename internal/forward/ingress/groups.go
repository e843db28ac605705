package ingress

// groups is what the tracks of one publication share, by the number of their group. A track of group 0 shares nothing.
type groups struct {
	numbers map[uint64]*frameNumbers
	// instants are those of converted tracks.
	instants map[uint64]*instants
}

func newGroups() groups {
	return groups{numbers: make(map[uint64]*frameNumbers), instants: make(map[uint64]*instants)}
}

// frameNumbers returns what tracks of a group extend their frame numbers with.
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

// captures returns what converted tracks of a group number capture instants with.
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

// drop forgets a group.
func (g *groups) drop(group uint64) {
	delete(g.numbers, group)
	delete(g.instants, group)
}

// clear forgets all groups.
func (g *groups) clear() {
	clear(g.numbers)
	clear(g.instants)
}
