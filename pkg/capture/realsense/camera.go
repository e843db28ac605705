package realsense

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/capture/depth"
	"github.com/volsfu/volsfu/pkg/capture/realsense/rs2"
)

// devices gives access to the cameras that are plugged in: a context of the library, or a substitute
// in tests.
type devices interface {
	// Count returns the number of cameras.
	Count() (int, error)
	// Devices opens all cameras.
	Devices() ([]*rs2.Device, error)
	Close()
}

// timeouts holds the time limits for cameras.
type timeouts struct {
	// until the first image: cameras start within 2 s, later if they adjust exposure in the dark
	first time.Duration
	next  time.Duration // between images
	poll  time.Duration // between checks for added or removed cameras
	retry time.Duration // between attempts to start a lost camera if no camera was added or removed
}

// defaultTimeouts avoids frequent attempts: starting a camera opens all of them, which is slow and can
// disturb cameras that capture.
var defaultTimeouts = timeouts{
	first: 5 * time.Second,
	next:  time.Second,
	poll:  500 * time.Millisecond,
	retry: 5 * time.Second,
}

// waitSlice is the maximum duration of one wait for an image, and so of the wait of Close for a camera.
const waitSlice = 100 * time.Millisecond

// camera is one camera. The goroutine, run, owns its stream.
type camera struct {
	index    int
	camera   depth.Camera // as first found
	config   Config
	library  *rs2.Library
	devices  devices
	finding  *sync.Mutex // cameras search one at a time
	timeouts timeouts
	mailbox  *mailbox
	times    int // number of recordings started
}

// find starts the camera if it is plugged in.
func (c *camera) find(serial string) (*stream, error) {
	c.finding.Lock()
	defer c.finding.Unlock()
	devices, err := c.devices.Devices()
	if err != nil {
		return nil, err
	}
	var found *rs2.Device
	for _, device := range devices {
		if found == nil && device.Info(rs2.SerialNumber) == serial {
			found = device
		} else {
			device.Close()
		}
	}
	if found == nil {
		return nil, fmt.Errorf("%w with serial number %s", ErrNoCamera, serial)
	}
	record, err := c.recordFile(serial)
	if err != nil {
		found.Close()
		return nil, err
	}
	s, err := startStream(
		c.library,
		found,
		record,
		wanted{c.config.Width, c.config.Height, c.config.FPS},
		c.config.Filters,
	)
	if err != nil {
		return nil, fmt.Errorf("camera %s: %w", serial, err)
	}
	return s, nil
}

// recordFile returns the file for the next recording, "" for none. Earlier recordings are not
// overwritten.
func (c *camera) recordFile(serial string) (string, error) {
	if c.config.Record == "" {
		return "", nil
	}
	for ; ; c.times++ {
		name := recordName(c.config.Record, serial, len(c.config.Serials) > 1, c.times)
		_, err := os.Stat(name)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			c.times++
			return name, nil
		case err != nil:
			return "", fmt.Errorf("%w: recording: %w", ErrConfig, err)
		case c.times == 0:
			return "", fmt.Errorf("%w: recording %s already exists", ErrConfig, name)
		}
	}
}

// recordName returns the file name of a recording: NAME.db3, with several cameras NAME-SERIAL.db3,
// and NAME-SERIAL-2.db3 after the first return of the camera.
func recordName(name, serial string, several bool, times int) string {
	extension := filepath.Ext(name)
	stem := strings.TrimSuffix(name, extension)
	if several {
		stem += "-" + serial
	}
	if times > 0 {
		stem += fmt.Sprintf("-%d", times+1)
	}
	return stem + extension
}

// errSilent reports that a camera delivered no images. The camera then counts as lost.
var errSilent = errors.New("no images")

// run captures until the context ends. After losing the camera, it waits for its return.
func (c *camera) run(ctx context.Context, s *stream) {
	log := c.config.log().With("camera", c.camera.Name)
	for {
		err := c.capture(ctx, s)
		s.close()
		if ctx.Err() != nil {
			return
		}
		c.mailbox.setAbsent(c.index)
		log.Warn("RealSense camera lost, the others go on", "reason", err)
		if s = c.reconnect(ctx); s == nil {
			return
		}
		c.mailbox.setPresent(c.index)
		log.Info("RealSense camera is back")
	}
}

// capture puts the stream's pictures into the mailbox until the camera is lost, or the context ends.
func (c *camera) capture(ctx context.Context, s *stream) error {
	var clock translation
	into := new(picture)
	last, wait := time.Now(), c.timeouts.first
	for ctx.Err() == nil {
		got, err := s.next(waitSlice, into)
		if err != nil {
			return err
		}
		now := time.Now()
		if got {
			into = c.mailbox.put(c.index, into, clock.capture(into.stamp, into.domain, now), now)
			last, wait = now, c.timeouts.next
		} else if now.Sub(last) > wait {
			return fmt.Errorf("%w for %v", errSilent, wait)
		}
	}
	return ctx.Err()
}

// reconnect retries until the camera is present again with the same lens. reconnect returns nil if the context ends
// first. A changed cause of failure is logged.
func (c *camera) reconnect(ctx context.Context) *stream {
	ticker := time.NewTicker(c.timeouts.poll)
	defer ticker.Stop()
	told, there := "", -1
	var tried time.Time
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return nil
		}
		count, err := c.devices.Count()
		if err == nil && count == there && time.Since(tried) < c.timeouts.retry {
			continue
		}
		there, tried = count, time.Now()
		s, err := c.restart()
		if err == nil {
			return s
		}
		if message := err.Error(); message != told && !errors.Is(err, ErrNoCamera) {
			told = message
			c.config.log().Warn("RealSense camera does not start again yet", "camera", c.camera.Name, "reason", err)
		}
	}
}

// restart starts the camera if it is present and unchanged.
func (c *camera) restart() (*stream, error) {
	s, err := c.find(c.camera.Name)
	if err != nil {
		return nil, err
	}
	seen := s.camera
	seen.Pose = c.camera.Pose
	if seen != c.camera {
		s.close()
		return nil, fmt.Errorf(
			"%w: the camera came back as %dx%d with another lens",
			ErrStreams,
			seen.Width,
			seen.Height,
		)
	}
	return s, nil
}
