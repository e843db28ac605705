package recorder

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/volsfu/volsfu/pkg/recording"
)

// errLimit is wrapped with the limit that is reached.
var errLimit = errors.New("a limit of recordings is reached")

// ledger knows the sizes of all segments and decides whether more may be written. The methods are safe for any
// goroutine.
type ledger struct {
	directory    string
	most         int64
	minFree      int64
	deleteOldest bool
	// free returns the free bytes of the file system, false if unknown.
	free func(directory string) (int64, bool)

	mu    sync.Mutex
	total int64
	rooms map[string]int64
	// closed are the segments that are not being written, oldest first.
	closed []closedSegment
	// deleted counts deleted segments.
	deleted uint64
}

// closedSegment is a segment that is not being written. room is the folder of its room.
type closedSegment struct {
	path, room string
	size       int64
	written    time.Time
}

// openLedger creates the directory if necessary and reads the sizes of the segments in it.
func openLedger(c *Config) (*ledger, error) {
	l := &ledger{
		directory: c.Directory, most: c.MaxBytes, minFree: c.MinFree, deleteOldest: c.DeleteOldest, free: freeBytes,
		rooms: make(map[string]int64),
	}
	if err := os.MkdirAll(c.Directory, 0o700); err != nil {
		return nil, fmt.Errorf("recordings.directory: %w", err)
	}
	paths, err := filepath.Glob(filepath.Join(globEscaped(c.Directory), "*", "*", "*"+recording.Extension))
	if err != nil {
		return nil, fmt.Errorf("recordings.directory: %w", err)
	}
	for _, path := range paths {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		room := filepath.Base(filepath.Dir(filepath.Dir(path)))
		l.total += info.Size()
		l.rooms[room] += info.Size()
		l.closed = append(l.closed, closedSegment{path, room, info.Size(), info.ModTime()})
	}
	slices.SortStableFunc(l.closed, func(a, b closedSegment) int { return a.written.Compare(b.written) })
	return l, nil
}

// globEscaped returns a pattern that matches a path only.
func globEscaped(path string) string {
	var escaped []rune
	for _, c := range path {
		if c == '*' || c == '?' || c == '[' || c == '\\' {
			escaped = append(escaped, '\\')
		}
		escaped = append(escaped, c)
	}
	return string(escaped)
}

// reserve counts bytes that a room is about to write. If a limit is reached, reserve deletes the oldest segments if
// that is configured. Otherwise the error wraps errLimit.
func (l *ledger) reserve(room string, bytes int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.most > 0 && l.rooms[room]+bytes > l.most/roomShare {
		if !l.delete(room) {
			return fmt.Errorf("%w: the recordings of this room have %d bytes, the limit is %d (half of "+
				"recordings.max_bytes)", errLimit, l.rooms[room], l.most/roomShare)
		}
	}
	for l.most > 0 && l.total+bytes > l.most {
		if !l.delete("") {
			return fmt.Errorf("%w: all recordings have %d bytes, the limit is %d (recordings.max_bytes)", errLimit,
				l.total, l.most)
		}
	}
	for {
		free, known := l.free(l.directory)
		if !known || free-bytes >= l.minFree {
			break
		}
		if !l.delete("") {
			return fmt.Errorf("%w: the file system has %d bytes free, recordings leave at least %d", errLimit, free,
				l.minFree)
		}
	}
	l.total += bytes
	l.rooms[room] += bytes
	return nil
}

// delete deletes the oldest closed segment of a room, or of all rooms if room is empty. delete returns false if there
// is none, or if segments are not to be deleted.
func (l *ledger) delete(room string) bool {
	if !l.deleteOldest {
		return false
	}
	at := slices.IndexFunc(l.closed, func(s closedSegment) bool { return room == "" || s.room == room })
	if at < 0 {
		return false
	}
	s := l.closed[at]
	l.closed = slices.Delete(l.closed, at, at+1)
	// A file that an operator has deleted no longer counts. Other errors leave the file, which the next start counts.
	if os.Remove(s.path) == nil {
		l.deleted++
		_ = os.Remove(filepath.Dir(s.path)) // only if the folder is empty
	}
	l.subtract(s.room, s.size)
	return true
}

// unreserve releases bytes that were not written.
func (l *ledger) unreserve(room string, bytes int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.subtract(room, bytes)
}

func (l *ledger) subtract(room string, bytes int64) {
	l.total -= bytes
	if l.rooms[room] -= bytes; l.rooms[room] <= 0 {
		delete(l.rooms, room)
	}
}

// closeSegment adds a segment that is complete, of a size that was reserved.
func (l *ledger) closeSegment(path, room string, size int64, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := closedSegment{path, room, size, now}
	at, _ := slices.BinarySearchFunc(l.closed, s, func(a, b closedSegment) int {
		return cmp.Or(a.written.Compare(b.written), -1)
	})
	l.closed = slices.Insert(l.closed, at, s)
}

// usage returns the bytes of all segments and the number of deleted segments.
func (l *ledger) usage() (bytes int64, deleted uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.total, l.deleted
}
