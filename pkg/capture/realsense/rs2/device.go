package rs2

import "errors"

// Context is the library's view of the cameras that are plugged in.
type Context struct {
	library *Library
	handle  uintptr
}

// NewContext looks for cameras. It is cheap where there are none, and takes a moment for each.
func (l *Library) NewContext() (*Context, error) {
	var failed uintptr
	// The library refuses programs that were written for a newer version than it is. This package checks what it needs by itself.
	handle := l.symbols.CreateContext(l.api, &failed)
	if err := l.failure(failed); err != nil {
		return nil, err
	}
	return &Context{l, handle}, nil
}

// Close forgets the context. Devices that came from it stay valid.
func (c *Context) Close() { c.library.symbols.DeleteContext(c.handle) }

// query lists the cameras that are plugged in now. The list is to be deleted.
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

// Count is the number of cameras that are plugged in now. None of them is opened for that.
func (c *Context) Count() (int, error) {
	list, count, err := c.query()
	if err == nil {
		c.library.symbols.DeleteDeviceList(list)
	}
	return int(count), err
}

// Devices opens every camera that is plugged in now, also those that are open already.
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
		// One that was unplugged meanwhile, or that another program holds, does not stand in the way of the others.
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

// Device is a camera, a recording that is played as one, or a camera whose frames are recorded.
type Device struct {
	library *Library
	handle  uintptr
}

// Close lets go of the device; its sensors must be closed. A recording is complete once its device is closed.
func (d *Device) Close() { d.library.symbols.DeleteDevice(d.handle) }

// Info is what the device tells about itself, "" where it does not.
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

// Play opens a recording, of a kind that this version of the library reads. Its frames come as fast as they are taken, none is left out, once
// its sensors have been started and Resume was called.
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

// Resume lets a recording begin: what it has for a sensor that is not started yet is lost. It returns once images have been taken from the sensors'
// queues, so that it must run beside whoever takes them.
func (d *Device) Resume() error {
	var failed uintptr
	d.library.symbols.ResumePlayback(d.handle, &failed)
	return d.library.failure(failed)
}

// Ended tells whether a recording's last frame has been handed out.
func (d *Device) Ended() (bool, error) {
	status, err := d.library.call(d.library.symbols.PlaybackStatus, d.handle)
	return int32(status) == playbackStopped, err
}

// Record gives a device that does what this one does and writes every frame to a file. This device must stay open as long.
func (d *Device) Record(file string) (*Device, error) {
	var failed uintptr
	handle := d.library.symbols.CreateRecordDevice(d.handle, file, &failed)
	if err := d.library.failure(failed); err != nil {
		return nil, err
	}
	return &Device{d.library, handle}, nil
}

// Sensors opens the parts of a camera that stream: stereo module, colour camera.
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
