package rs2

import "errors"

// Context is the library's view of the connected cameras.
type Context struct {
	library *Library
	handle  uintptr
}

// NewContext searches for cameras. This is fast without cameras, and takes a moment for each one.
func (l *Library) NewContext() (*Context, error) {
	var failed uintptr
	// The library rejects programs written for a newer version. This package has separate checks.
	handle := l.symbols.CreateContext(l.api, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	return &Context{l, handle}, nil
}

// Close frees the context. Open devices stay valid.
func (c *Context) Close() { c.library.symbols.DeleteContext(c.handle) }

// query lists the connected cameras. The caller must delete the list.
func (c *Context) query() (list uintptr, count int32, err error) {
	l := c.library
	var failed uintptr
	list = l.symbols.QueryDevices(c.handle, &failed)
	if err := l.failure(failed); err != nil {
		return 0, 0, err
	}
	count = l.symbols.GetDeviceCount(list, &failed)
	if err := l.failure(failed); err != nil {
		l.symbols.DeleteDeviceList(list)
		return 0, 0, err
	}
	return list, count, nil
}

// Count returns the number of connected cameras without opening the cameras.
func (c *Context) Count() (int, error) {
	list, count, err := c.query()
	if err == nil {
		c.library.symbols.DeleteDeviceList(list)
	}
	return int(count), err
}

// Devices opens every connected camera, even cameras that are already open.
func (c *Context) Devices() ([]*Device, error) {
	l := c.library
	list, count, err := c.query()
	if err != nil {
		return nil, err
	}
	defer l.symbols.DeleteDeviceList(list)
	var failed uintptr
	var devices []*Device
	var errs []error
	for i := range count {
		handle := l.symbols.CreateDevice(list, i, &failed)
		// A camera that was unplugged meanwhile, or is used by another program, must not block the
		// others.
		if err := l.failure(failed); err != nil {
			errs, failed = append(errs, err), 0
			continue
		}
		devices = append(devices, &Device{l, handle})
	}
	if len(devices) == 0 {
		return nil, errors.Join(errs...)
	}
	return devices, nil
}

// Device is a camera, a recording played as one, or a camera with its frames being recorded.
type Device struct {
	library *Library
	handle  uintptr
}

// Close frees the device. All sensors must be closed first. A recording is complete once the device
// is closed.
func (d *Device) Close() { d.library.symbols.DeleteDevice(d.handle) }

// Info returns information about the device, or "" if there is none.
func (d *Device) Info(info Info) string {
	l := d.library
	var failed uintptr
	known := l.symbols.SupportsDeviceInfo(d.handle, int32(info), &failed)
	if l.failure(failed) != nil || known == 0 {
		return ""
	}
	value := l.symbols.GetDeviceInfo(d.handle, int32(info), &failed)
	if l.failure(failed) != nil {
		return ""
	}
	return value
}

// Play opens a recording in a format that this version of the library reads. Frames are delivered
// as fast as the program reads after the start of the sensors and after Resume.
func (c *Context) Play(file string) (*Device, error) {
	l := c.library
	var failed uintptr
	handle := l.symbols.AddPlayback(c.handle, file, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	d := &Device{l, handle}
	l.symbols.SetRealTime(handle, 0, &failed)
	if failed == 0 {
		l.symbols.PausePlayback(handle, &failed)
	}
	if err := l.failure(failed); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// Resume starts a recording: frames for a sensor that is not yet started are lost. Resume returns
// after images were removed from the sensors' queues, so the reader must run concurrently.
func (d *Device) Resume() error {
	var failed uintptr
	d.library.symbols.ResumePlayback(d.handle, &failed)
	return d.library.failure(failed)
}

// Ended reports whether the last frame of a recording was delivered.
func (d *Device) Ended() (bool, error) {
	status, err := d.library.call(d.library.symbols.PlaybackStatus, d.handle)
	return int32(status) == playbackStopped, err
}

// Record returns a device with the function of this one that also writes every frame to a file.
// This device must stay open meanwhile.
func (d *Device) Record(file string) (*Device, error) {
	var failed uintptr
	handle := d.library.symbols.CreateRecordDevice(d.handle, file, &failed)
	if err := d.library.failure(failed); err != nil {
		return nil, err
	}
	return &Device{d.library, handle}, nil
}

// Sensors opens the streaming parts of a camera: stereo module, colour camera.
func (d *Device) Sensors() ([]*Sensor, error) {
	l := d.library
	var failed uintptr
	list := l.symbols.QuerySensors(d.handle, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	defer l.symbols.DeleteSensorList(list)
	count := l.symbols.GetSensorsCount(list, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	var sensors []*Sensor
	for i := range count {
		handle := l.symbols.CreateSensor(list, i, &failed)
		if err := l.failure(failed); err != nil {
			for _, sensor := range sensors {
				sensor.Close()
			}
			return nil, err
		}
		sensors = append(sensors, &Sensor{library: l, handle: handle})
	}
	return sensors, nil
}
