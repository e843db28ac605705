package pointcloud

// maxClasses is how many classes points can be told into: as many as a publication may have tiles.
const maxClasses = 256

// assigner tells points into classes: Assign writes the class of each of the cloud's points from begin on, as many as into takes. Several
// goroutines call it at once.
type assigner interface {
	Assign(src *Cloud, begin int, into []uint8)
}

// partition tells points into classes, and then moves all of them to a cloud per class, or some of each class to one cloud. Both keep the
// points' order, whatever the number of workers.
type partition struct {
	workerGroup workerGroup
	by          assigner
	src         *Cloud
	classes     []uint8
	count       int // of classes
	workers     int
	// ranks are, for each worker and class, how many points of the class lie before the worker's range.
	ranks [][maxClasses]int32
	// totals are how many points each class has.
	totals [maxClasses]int

	// dst are the clouds per class of scatter; kept is the cloud of thin, begins where each worker's points begin in it, and quotas how many
	// points of each class go there.
	dst    []Cloud
	kept   *Cloud
	begins []int
	quotas [maxClasses]int

	steps struct{ classify, scatter, thin func(worker, begin, end int) }
}

// classify tells the points of a cloud into count classes, and counts them.
func (p *partition) classify(src *Cloud, count int, by assigner) {
	if p.steps.classify == nil {
		p.steps.classify, p.steps.scatter, p.steps.thin = p.classifyRange, p.scatterRange, p.thinRange
	}
	n := src.Len()
	p.src, p.by, p.count = src, by, count
	p.classes = resize(p.classes, n)
	p.workers = p.workerGroup.size(n)
	p.ranks, p.begins = resize(p.ranks, p.workers), resize(p.begins, p.workers)
	p.workerGroup.do(n, p.workers, p.steps.classify)
	for class := range count {
		sum := int32(0)
		for w := range p.ranks {
			p.ranks[w][class], sum = sum, sum+p.ranks[w][class]
		}
		p.totals[class] = int(sum)
	}
}

func (p *partition) classifyRange(worker, begin, end int) {
	classes := p.classes[begin:end]
	p.by.Assign(p.src, begin, classes)
	counts := &p.ranks[worker]
	clear(counts[:])
	for _, class := range classes {
		counts[class]++
	}
}

// scatter moves every point to the cloud of its class.
func (p *partition) scatter(dst []Cloud) {
	for class := range dst {
		dst[class].resize(p.totals[class], p.src)
	}
	p.dst = dst
	p.workerGroup.do(p.src.Len(), p.workers, p.steps.scatter)
	p.release()
}

func (p *partition) scatterRange(worker, begin, end int) {
	// Slice headers on the stack make this about twice as fast as through the caller's memory.
	var positions [maxClasses][][3]float32
	var colors [maxClasses][][3]uint8
	for class := range p.dst {
		positions[class], colors[class] = p.dst[class].Positions, p.dst[class].Colors
	}
	src, next := p.src, p.ranks[worker]
	for i, class := range p.classes[begin:end] {
		at := next[class]
		next[class]++
		positions[class][at], colors[class][at] = src.Positions[begin+i], src.Colors[begin+i]
	}
	p.scatterOptional(worker, begin, end)
}

// scatterOptional moves labels and sources.
func (p *partition) scatterOptional(worker, begin, end int) {
	labels, sources := p.src.Labels, p.src.Sources
	if len(labels) == 0 && len(sources) == 0 {
		return
	}
	next := p.ranks[worker]
	for i, class := range p.classes[begin:end] {
		at, to := next[class], &p.dst[class]
		next[class]++
		if len(labels) > 0 {
			to.Labels[at] = labels[begin+i]
		}
		if len(sources) > 0 {
			to.Sources[at] = sources[begin+i]
		}
	}
}

// thin replaces dst's points by as many of each class as the quotas say, none of which may exceed the class. They are spread evenly over
// the sequence: among the first r of the n points of a class, round(r·quota/n) are chosen.
func (p *partition) thin(dst *Cloud) {
	sum := 0
	for w := range p.workers {
		p.begins[w] = sum
		for class := range p.count {
			end := p.totals[class]
			if w+1 < p.workers {
				end = int(p.ranks[w+1][class])
			}
			sum += p.chosen(class, end) - p.chosen(class, int(p.ranks[w][class]))
		}
	}
	dst.resize(sum, p.src)
	p.kept = dst
	p.workerGroup.do(p.src.Len(), p.workers, p.steps.thin)
	p.release()
}

// chosen is how many of the first points of a class are chosen.
func (p *partition) chosen(class, first int) int {
	n := int64(p.totals[class])
	if n == 0 {
		return 0
	}
	return int((2*int64(first)*int64(p.quotas[class]) + n) / (2 * n))
}

func (p *partition) thinRange(worker, begin, end int) {
	// What chosen rounds, in steps: a point is chosen where the remainder overflows.
	var remainder, gain, full [maxClasses]int64
	for class := range p.count {
		n := int64(p.totals[class])
		if n == 0 {
			continue
		}
		gain[class], full[class] = 2*int64(p.quotas[class]), 2*n
		remainder[class] = (int64(p.ranks[worker][class])*gain[class] + n) % full[class]
	}
	at := p.begins[worker]
	for i, class := range p.classes[begin:end] {
		r := remainder[class] + gain[class]
		if r >= full[class] {
			remainder[class] = r - full[class]
			p.kept.set(at, p.src, begin+i)
			at++
		} else {
			remainder[class] = r
		}
	}
}

// release forgets the clouds of a caller that may want their memory back.
func (p *partition) release() { p.src, p.dst, p.kept, p.by = nil, nil, nil, nil }
