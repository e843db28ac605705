package awake

// start keeps the processors awake until stop is called.
func start() (stop func()) {
	demand, err := demandLatency(latencyFile, driverFile)
	if err != nil {
		running := startLoops()
		return func() { stopLoops(running) }
	}
	return func() { _ = demand.Close() }
}
