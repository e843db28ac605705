package recorder

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/volsfu/volsfu/pkg/recording"
)

// disk writes the chunks of one recording. It belongs to the goroutine that writes.
type disk struct {
	folder string // of the recording
	room   string // folder of the room
	ledger *ledger
	// buffers is shared by all recordings.
	buffers buffers
	// interval is the time between two flushes.
	interval time.Duration

	// out is the present segment, nil if there is none.
	out   *blocks
	parts [][]byte
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
	if d.out == nil {
		return nil
	}
	if err := d.append(c); err != nil {
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
	file, direct, err := create(filepath.Join(d.folder, recording.SegmentName(segment)))
	if err != nil {
		return err
	}
	d.out, d.size = &blocks{file: file, direct: direct}, 0
	// A new file is lost with the power until its folder is flushed.
	if folder, err := os.Open(d.folder); err == nil {
		_ = folder.Sync()
		_ = folder.Close()
	}
	return nil
}

// append appends the records of a chunk. After an error, close cuts the segment to the records before the chunk.
func (d *disk) append(c *chunk) (err error) {
	if err := d.ledger.reserve(d.room, c.size); err != nil {
		return err
	}
	d.out.begin(d.buffers.take())
	d.parts, err = c.write(d.out, d.parts)
	d.buffers.give(d.out.end())
	clear(d.parts)
	if err != nil {
		d.ledger.unreserve(d.room, c.size)
		return fmt.Errorf("write a segment: %w", err)
	}
	d.size += c.size
	d.dirty = true
	return nil
}

// flush flushes the data to the disk if the interval has passed.
func (d *disk) flush(now time.Time) error {
	if d.out == nil || !d.dirty || now.Sub(d.flushed) < d.interval {
		return nil
	}
	d.dirty, d.flushed = false, now
	if err := d.out.file.Sync(); err != nil {
		return errors.Join(fmt.Errorf("flush a segment: %w", err), d.close(now))
	}
	return nil
}

// close cuts the segment to its records, and flushes and closes it.
func (d *disk) close(now time.Time) error {
	if d.out == nil {
		return nil
	}
	file := d.out.file
	err := errors.Join(file.Truncate(d.size), file.Sync(), file.Close())
	if d.size == 0 {
		_ = os.Remove(file.Name())
	} else {
		d.ledger.closeSegment(file.Name(), d.room, d.size, now)
	}
	d.out, d.size, d.dirty = nil, 0, false
	return err
}
