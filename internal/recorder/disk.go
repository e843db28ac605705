package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/pkg/recording"
)

// chunk is a part of a segment on its way to the disk: whole records.
type chunk struct {
	segment int
	data    []byte
	// frames is the number of frames and units in data.
	frames int
	// first and last are set for the first and the last chunk of a segment.
	first, last bool
}

// disk writes the chunks of one recording. It belongs to the goroutine that writes.
type disk struct {
	folder string // of the recording
	room   string // folder of the room
	ledger *ledger
	// interval is the time between two flushes.
	interval time.Duration

	file *os.File
	// size is the length of the records that were written completely. dirty is set if they are not flushed.
	size    int64
	dirty   bool
	flushed time.Time
}

// write writes a chunk. After an error nothing is written before the first chunk of another segment.
func (d *disk) write(c *chunk, now time.Time) error {
	if c.first {
		// The former segment may have been cut.
		if err := d.close(now); err != nil {
			return err
		}
		if err := d.open(c.segment); err != nil {
			return err
		}
	}
	if d.file == nil {
		return nil
	}
	if err := d.append(c.data); err != nil {
		return errors.Join(err, d.close(now))
	}
	if c.last {
		return d.close(now)
	}
	return nil
}

// open creates a segment that only this user can read.
func (d *disk) open(segment int) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return err
	}
	path := filepath.Join(d.folder, recording.SegmentName(segment))
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	d.file, d.size = file, 0
	// A new file is lost with the power until its folder is flushed.
	if folder, err := os.Open(d.folder); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
	return nil
}

// append appends records, all or none.
func (d *disk) append(data []byte) error {
	if err := d.ledger.reserve(d.room, int64(len(data))); err != nil {
		return err
	}
	if _, err := d.file.Write(data); err != nil {
		d.ledger.unreserve(d.room, int64(len(data)))
		if cut := d.file.Truncate(d.size); cut != nil {
			err = errors.Join(err, cut)
		}
		return fmt.Errorf("write a segment: %w", err)
	}
	d.size += int64(len(data))
	d.dirty = true
	return nil
}

// flush flushes the data to the disk if the interval has passed.
func (d *disk) flush(now time.Time) error {
	if d.file == nil || !d.dirty || now.Sub(d.flushed) < d.interval {
		return nil
	}
	d.dirty, d.flushed = false, now
	if err := d.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("flush a segment: %w", err), d.close(now))
	}
	return nil
}

// close flushes and closes the segment.
func (d *disk) close(now time.Time) error {
	if d.file == nil {
		return nil
	}
	err := errors.Join(d.file.Sync(), d.file.Close())
	if d.size == 0 {
		_ = os.Remove(d.file.Name())
	} else {
		d.ledger.closeSegment(d.file.Name(), d.room, d.size, now)
	}
	d.file, d.size, d.dirty = nil, 0, false
	return err
}
