package pointcloud

// maxClasses is the maximum number of classes of points: the maximum number of tiles of a
// publication.
const maxClasses = 256

// assigner assigns points to classes: Assign writes the classes of the cloud's points from begin on
// to into. Several goroutines call Assign concurrently.
type assigner interface {
	Assign(src *Cloud, begin int, into []uint8)
}

// partition divides points into classes. The partition then copies the points to one cloud per class, or some points of
// each class to one cloud. The points keep the order, whatever the number of workers.
type partition struct {
	workerGroup workerGroup
	by          assigner
	src         *Cloud
	classes     []uint8
	count       int // of classes
	workers     int
	// ranks contains, for each worker and class, the number of points of the class before the
	// worker's range.
	ranks [][maxClasses]int32
	// totals contains the number of points of each class.
	totals [maxClasses]int

	// dst contains the clouds per class for scatter. kept is the cloud for thin, begins the first
	// index of each worker in it, and quotas the number of points of each class that are kept.
	dst    []Cloud
	kept   *Cloud
	begins []int
	quotas [maxClasses]int

	steps struct{ classify, scatter, thin func(worker, begin, end int) }
}

// classify assigns the points of a cloud to count classes and counts the points of each class.
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

// scatter copies every point to the cloud of the point's class.
func (p *partition) scatter(dst []Cloud) {
	for class := range dst {
		dst[class].resize(p.totals[class], p.src)
	}
	p.dst = dst
	p.workerGroup.do(p.src.Len(), p.workers, p.steps.scatter)
	p.release()
}

func (p *partition) scatterRange(worker, begin, end int) {
	// Slice headers on the stack make this about twice as fast as slice headers in the caller's
	// memory.
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

// scatterOptional copies labels and sources.
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

// thin replaces dst's points by the number of points of each class in quotas. A quota must not
// exceed the class. The points are spread evenly: among the first r of the n points of a class,
// round(r·quota/n) are chosen.
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

// chosen returns the number of chosen points among the first points of a class.
func (p *partition) chosen(class, first int) int {
	n := int64(p.totals[class])
	if n == 0 {
		return 0
	}
	return int((2*int64(first)*int64(p.quotas[class]) + n) / (2 * n))
}

func (p *partition) thinRange(worker, begin, end int) {
	// The incremental form of chosen: a point is chosen if the remainder overflows.
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

// release drops the references to clouds, whose memory belongs to the caller.
func (p *partition) release() { p.src, p.dst, p.kept, p.by = nil, nil, nil, nil }
