package depth

// run is a range of neighbouring pixels of a row on the same surface, from begin to end, as indices
// of the image. The runs of one surface form a tree.
type run struct {
	begin, end int32
	parent     int32
	// pixels is the number of pixels of the surface, valid in the root of the tree.
	pixels int32
}

// surfaces finds surfaces connected by pixel edges, not by corners: a union of runs (He, Chao and
// Suzuki, "A run-based two-scan labeling algorithm", 2008), row by row. Bands of rows are processed
// concurrently and joined afterwards.
type surfaces struct {
	width int
	// runs has room for one run per pixel. The runs of a row start at the index of the row's first
	// pixel, so that bands are independent.
	runs []run
	// ends contains the end of each row's runs.
	ends []int32
}

func newSurfaces(width, height int) surfaces {
	return surfaces{width: width, runs: make([]run, width*height), ends: make([]int32, height)}
}

// row returns the range of a row's runs.
func (s *surfaces) row(y int) (first, end int32) { return int32(y * s.width), s.ends[y] }

// split finds the runs of a row.
func (s *surfaces) split(depth []uint16, joints []joint, y int) {
	begin := int32(y * s.width)
	next := begin
	line := depth[begin:][:s.width]
	for x := 0; x < len(line); x++ {
		d := line[x]
		if d == 0 {
			continue
		}
		start := x
		for x+1 < len(line) && joints[d].has(line[x+1]) {
			x++
			d = line[x]
		}
		s.runs[next] = run{begin: begin + int32(start), end: begin + int32(x) + 1, parent: next}
		next++
	}
	s.ends[y] = next
}

// join unites the runs of a row with the adjacent runs of the row above.
func (s *surfaces) join(depth []uint16, joints []joint, y int) {
	width := int32(s.width)
	above, aboveEnd := s.row(y - 1)
	here, hereEnd := s.row(y)
	for above < aboveEnd && here < hereEnd {
		a, h := &s.runs[above], &s.runs[here]
		first, end := max(a.begin+width, h.begin), min(a.end+width, h.end)
		for i := first; i < end; i++ {
			if joints[depth[i]].has(depth[i-width]) {
				s.unite(above, here)
				break
			}
		}
		if a.end+width < h.end {
			above++
		} else {
			here++
		}
	}
}

func (s *surfaces) root(i int32) int32 {
	for s.runs[i].parent != i {
		s.runs[i].parent = s.runs[s.runs[i].parent].parent
		i = s.runs[i].parent
	}
	return i
}

// unite makes the earlier root the root of both trees, so that a root precedes all other runs of
// its tree.
func (s *surfaces) unite(a, b int32) {
	a, b = s.root(a), s.root(b)
	s.runs[max(a, b)].parent = min(a, b)
}

// measure counts the pixels of every surface of the image.
func (s *surfaces) measure() {
	for y := range s.ends {
		first, end := s.row(y)
		for i := first; i < end; i++ {
			s.runs[i].pixels = 0
			root := s.root(i)
			s.runs[root].pixels += s.runs[i].end - s.runs[i].begin
		}
	}
}

// size returns the number of pixels of the surface of a run, after measure.
func (s *surfaces) size(i int32) int32 { return s.runs[s.root(i)].pixels }
