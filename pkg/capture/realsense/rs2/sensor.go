package rs2

// Profile is one mode in which a sensor can stream. The handle is valid as long as the sensor is
// open.
type Profile struct {
	Stream        Stream
	Format        Format
	Index         int // among streams of the same kind
	FPS           int
	Width, Height int // in pixels; 0 if the stream is not video
	handle        uintptr
}

// Sensor is a streaming part of a device.
type Sensor struct {
	library *Library
	handle  uintptr
	lists   []uintptr // of profiles; a profile is valid as long as the list
}

// Close frees the sensor, which must be stopped.
func (s *Sensor) Close() {
	for _, list := range s.lists {
		s.library.symbols.DeleteStreamProfilesList(list)
	}
	s.library.symbols.DeleteSensor(s.handle)
}

// Profiles returns the modes in which the sensor can stream video of depth or colour.
func (s *Sensor) Profiles() ([]Profile, error) {
	l := s.library
	var failed uintptr
	list := l.symbols.GetStreamProfiles(s.handle, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	s.lists = append(s.lists, list)
	count := l.symbols.GetStreamProfilesCount(list, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	var profiles []Profile
	for i := range count {
		handle := l.symbols.GetStreamProfile(list, i, &failed)
		if err := l.failure(failed); err != nil {
			return nil, err
		}
		profile, err := l.describe(handle)
		if err != nil {
			return nil, err
		}
		if profile.Stream == Depth || profile.Stream == Color {
			profiles = append(profiles, profile)
		}
	}
	return profiles, nil
}

func (l *Library) describe(handle uintptr) (Profile, error) {
	profile, err := l.kind(handle)
	if err != nil || profile.Stream != Depth && profile.Stream != Color {
		return profile, err
	}
	var width, height int32
	var failed uintptr
	l.symbols.GetVideoStreamResolution(handle, &width, &height, &failed)
	profile.Width, profile.Height = int(width), int(height)
	return profile, l.failure(failed)
}

// kind returns a profile without the size. kind is called for every frame and does not allocate.
func (l *Library) kind(handle uintptr) (Profile, error) {
	i := invocations.Get().(*invocation)
	defer invocations.Put(i)
	clear(i.out[:])
	_, err := i.call(l, l.symbols.ProfileData, handle,
		address(&i.out[0]), address(&i.out[1]), address(&i.out[2]), address(&i.out[3]), address(&i.out[4]))
	return Profile{
		Stream: Stream(
			int32(i.out[0]),
		), Format: Format(int32(i.out[1])), Index: int(int32(i.out[2])), FPS: int(int32(i.out[4])), handle: handle,
	}, err
}

// Intrinsics returns the lens parameters of a profile, which never change for a recording or
// camera.
func (l *Library) Intrinsics(p Profile) (Intrinsics, error) {
	intrinsics := new(Intrinsics)
	var failed uintptr
	l.symbols.GetVideoStreamIntrinsics(p.handle, intrinsics, &failed)
	return *intrinsics, l.failure(failed)
}

// DepthUnit returns the length in metres of one unit of a depth sensor's images.
func (s *Sensor) DepthUnit() (float64, error) {
	var failed uintptr
	unit := s.library.symbols.GetOption(s.handle, int32(depthUnits), &failed)
	return float64(unit), s.library.failure(failed)
}

// Start opens the sensor with the given profiles. Until Stop, frames are stored in the queue.
func (s *Sensor) Start(profiles []Profile, queue *Queue) error {
	l := s.library
	handles := make([]uintptr, len(profiles))
	for i, p := range profiles {
		handles[i] = p.handle
	}
	var failed uintptr
	l.symbols.OpenMultiple(s.handle, &handles[0], int32(len(handles)), &failed)
	if err := l.failure(failed); err != nil {
		return err
	}
	l.symbols.StartQueue(s.handle, queue.handle, &failed)
	if err := l.failure(failed); err != nil {
		failed = 0
		l.symbols.CloseSensor(s.handle, &failed)
		_ = l.failure(failed) // the first error is the one to return
		return err
	}
	return nil
}

// Stop ends the streaming. If the camera was unplugged, Stop returns an error, but streaming has
// ended.
func (s *Sensor) Stop() error {
	l := s.library
	var failed uintptr
	l.symbols.StopSensor(s.handle, &failed)
	err := l.failure(failed)
	failed = 0
	l.symbols.CloseSensor(s.handle, &failed)
	if closing := l.failure(failed); err == nil {
		err = closing
	}
	return err
}
