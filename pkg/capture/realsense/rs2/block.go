package rs2

// Block is a step of the library's image processing with a queue for the results. Blocks run inside
// Process only.
type Block struct {
	library *Library
	handle  uintptr
	results *Queue
}

// capacity is the maximum number of results of a block per input frame. The synchroniser receives
// single frames and may release several sets at once that waited for a late stream.
const capacity = 16

func (l *Library) newBlock(create func(failed *uintptr) uintptr) (*Block, error) {
	var failed uintptr
	handle := create(&failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	results, err := l.NewQueue(capacity)
	if err != nil {
		l.symbols.DeleteBlock(handle)
		return nil, err
	}
	b := &Block{l, handle, results}
	l.symbols.StartProcessingQueue(handle, results.handle, &failed)
	if err := l.failure(failed); err != nil {
		b.Close()
		return nil, err
	}
	return b, nil
}

// NewSync makes a block that combines images of several streams into sets by their times.
func (l *Library) NewSync() (*Block, error) { return l.newBlock(l.symbols.CreateSync) }

// NewAlign makes a block that maps the other images of a set to the view of one stream.
func (l *Library) NewAlign(to Stream) (*Block, error) {
	return l.newBlock(func(failed *uintptr) uintptr { return l.symbols.CreateAlign(int32(to), failed) })
}

// NewDecimation makes a block that shrinks depth images.
func (l *Library) NewDecimation() (*Block, error) { return l.newBlock(l.symbols.CreateDecimation) }

// NewSpatial makes a block that smooths depth images and preserves edges.
func (l *Library) NewSpatial() (*Block, error) { return l.newBlock(l.symbols.CreateSpatial) }

// NewTemporal makes a block that smooths depth over time.
func (l *Library) NewTemporal() (*Block, error) { return l.newBlock(l.symbols.CreateTemporal) }

// NewHoleFilling makes a block that fills pixels without depth from a neighbour.
func (l *Library) NewHoleFilling() (*Block, error) { return l.newBlock(l.symbols.CreateHoleFilling) }

// NewDisparity makes a block that converts depth to disparity, in which the noise of stereo cameras
// is uniform, or back.
func (l *Library) NewDisparity(toDisparity bool) (*Block, error) {
	direction := uint8(0)
	if toDisparity {
		direction = 1
	}
	return l.newBlock(func(failed *uintptr) uintptr { return l.symbols.CreateDisparity(direction, failed) })
}

// NewPointcloud makes a block that converts a depth image to points.
func (l *Library) NewPointcloud() (*Block, error) { return l.newBlock(l.symbols.CreatePointcloud) }

// Set changes one of the block's settings.
func (b *Block) Set(option Option, value float64) error {
	var failed uintptr
	b.library.symbols.SetOption(b.handle, int32(option), float32(value), &failed)
	return b.library.failure(failed)
}

// Process passes a frame to the block, which owns the frame afterwards. On return, the results are
// available.
func (b *Block) Process(f Frame) error {
	_, err := b.library.call(b.library.symbols.ProcessFrame, b.handle, f.handle)
	return err
}

// Result returns a result, or no frame if there is none left.
func (b *Block) Result() (Frame, error) { return b.results.Poll() }

// Close frees the block and its results.
func (b *Block) Close() {
	b.library.symbols.DeleteBlock(b.handle)
	b.results.Close()
}
