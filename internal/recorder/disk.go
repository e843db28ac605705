package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/volsfu/volsfu/pkg/recording"
)

// disk writes the chunks of one recording. It belongs to the goroutine that writes.
type disk struct {
	folder string // of the recording
	room   string // folder of the room
	ledger *ledger
	// interval is the time between two flushes.
	interval time.Duration

	// file is the present segment, nil if there is none. direct is set if it is open for direct writing, which needs
	// whole blocks.
	file   *os.File
	direct bool
	// size is the length of the records that were written completely. dirty is set if they are not flushed.
	size    int64
	dirty   bool
	flushed time.Time
}

// write writes a chunk and reports whether its records are in the segment. After an error nothing is written before the
// first chunk of another segment.
func (d *disk) write(c *chunk, now time.Time) (written bool, err error) {
	if c.first {
		// The former segment may have been cut.
		if err := d.close(now); err != nil {
			return false, err
		}
		if err := d.open(c.segment); err != nil {
			return false, err
		}
	}
	if d.file == nil {
		return false, nil
	}
	if err := d.append(c); err != nil {
		return false, errors.Join(err, d.close(now))
	}
	if c.last {
		return true, d.close(now)
	}
	return true, nil
}

// open creates a segment that only this user can read.
func (d *disk) open(segment int) error {
	if err := os.MkdirAll(d.folder, 0o700); err != nil {
		return err
	}
	file, direct, err := create(filepath.Join(d.folder, recording.SegmentName(segment)))
	if err != nil {
		return err
	}
	d.file, d.direct, d.size = file, direct, 0
	// A new file is lost with the power until its folder is flushed.
	if folder, err := os.Open(d.folder); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
	return nil
}

// append appends the records of a chunk. After an error, close cuts the segment to the records before the chunk.
func (d *disk) append(c *chunk) error {
	if err := d.ledger.reserve(d.room, c.size()); err != nil {
		return err
	}
	err := writeAt(d.file, c.blocks(d.direct), c.at)
	if d.direct && errors.Is(err, syscall.EINVAL) {
		// The file system has opened the file for direct writing and cannot do so.
		if err = endDirect(d.file); err == nil {
			d.direct = false
			err = writeAt(d.file, c.blocks(false), c.at)
		}
	}
	if err != nil {
		d.ledger.unreserve(d.room, c.size())
		return fmt.Errorf("write a segment: %w", err)
	}
	d.size += c.size()
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

// close cuts the segment to its records, and flushes and closes it.
func (d *disk) close(now time.Time) error {
	if d.file == nil {
		return nil
	}
	err := errors.Join(d.file.Truncate(d.size), d.file.Sync(), d.file.Close())
	if d.size == 0 {
		_ = os.Remove(d.file.Name())
	} else {
		d.ledger.closeSegment(d.file.Name(), d.room, d.size, now)
	}
	d.file, d.size, d.dirty = nil, 0, false
	return err
}
