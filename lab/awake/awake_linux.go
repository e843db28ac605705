package awake

// start keeps the processors awake until stop is called.
func start() (stop func()) {
	if stop, err := Demand(); err == nil {
		return stop
	}
	running := startLoops()
	return func() { stopLoops(running) }
}
