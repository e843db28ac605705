package duplication

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
)

// change is a path that joined or left the set of a rule.
type change struct {
	at     time.Duration // since the stage began
	path   int           // index of the path
	joined bool
}

// changeLog reads the changes from the log of an edge. It is safe for concurrent use.
type changeLog struct {
	mu      sync.Mutex
	partial []byte
	times   []time.Time
	changes []change // without times
}

// changed is the message of the edge's log for a change.
const changed = "the set of a rule has changed"

// Write implements io.Writer.
func (l *changeLog) Write(data []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, data...)
	for {
		line, rest, whole := bytes.Cut(l.partial, []byte("\n"))
		if !whole {
			return len(data), nil
		}
		l.take(line)
		l.partial = append(l.partial[:0], rest...)
	}
}

// take reads one line.
func (l *changeLog) take(line []byte) {
	var entry struct {
		Time    float64 `json:"ts"` // seconds since 1970
		Message string  `json:"msg"`
		Reason  string  `json:"reason"`
	}
	if json.Unmarshal(line, &entry) != nil || entry.Message != changed {
		return
	}
	var path int
	var verb string
	if n, _ := fmt.Sscanf(entry.Reason, "path path%d %s the set:", &path, &verb); n != 2 {
		return
	}
	l.times = append(l.times, time.UnixMicro(int64(entry.Time*1e6)))
	l.changes = append(l.changes, change{path: path - 1, joined: verb == "joined"})
}

// since returns all changes, with times since a moment.
func (l *changeLog) since(began time.Time) changes {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make(changes, len(l.changes))
	for i := range list {
		list[i] = l.changes[i]
		list[i].at = l.times[i].Sub(began)
	}
	return list
}

// changes are the changes of a set, which begins with the primary path alone.
type changes []change

// at returns the number of paths in the set before a time, and whether one path is in it.
func (c changes) at(t time.Duration, path int) (paths int, contained bool) {
	set := map[int]bool{0: true}
	for _, change := range c {
		if change.at >= t {
			break
		}
		if change.joined {
			set[change.path] = true
		} else {
			delete(set, change.path)
		}
	}
	return len(set), set[path]
}

// started returns how long after a time copies started, at most limit, and reports whether the set had one path until
// then.
func (c changes) started(t, limit time.Duration) (after time.Duration, single bool) {
	if paths, _ := c.at(t, 0); paths > 1 {
		return 0, false
	}
	for _, change := range c {
		if change.joined && change.at >= t {
			return min(change.at-t, limit), true
		}
	}
	return limit, true
}

// starts collects how soon copies start after the beginnings of disturbances. copying counts the disturbances at which
// copies were on already.
type starts struct {
	lab.Distribution
	copying int
}

// add adds the start after the beginning of a disturbance, at most limit, and returns it.
func (s *starts) add(list changes, begin, limit time.Duration) time.Duration {
	after, single := list.started(begin, limit)
	if single {
		s.Add(after)
	} else {
		s.copying++
	}
	return after
}

// returned returns how long after a time a path joined that was not in the set, at most limit.
func (c changes) returned(path int, t, limit time.Duration) (after time.Duration, outside bool) {
	if _, contained := c.at(t, path); contained {
		return 0, false
	}
	for _, change := range c {
		if change.joined && change.path == path && change.at >= t {
			return min(change.at-t, limit), true
		}
	}
	return limit, true
}

// stays returns how long a path was in the set each time after from, until the end at most.
func (c changes) stays(path int, from, end time.Duration) (stays []time.Duration) {
	in, since := false, time.Duration(0)
	for _, change := range c {
		if change.path != path || change.at < from || change.joined == in {
			continue
		}
		if in {
			stays = append(stays, change.at-since)
		}
		in, since = change.joined, change.at
	}
	if in {
		stays = append(stays, end-since)
	}
	return stays
}
