// Package directory has the rooms of a node and their sessions by name. It opens rooms for joins and for the API, and
// ends rooms without members.
package directory

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

var (
	// ErrExists reports that the room exists.
	ErrExists = errors.New("the room exists")
	// ErrRooms reports that the server has the maximum number of rooms, or is about to stop.
	ErrRooms = errors.New("no further room")
)

// Room is a room of the node. The methods are called with the directory's mutex: they must neither wait nor call the
// directory.
type Room interface {
	comparable
	Name() string
	// Begin reports that the API has opened the room, End that the room has ended.
	Begin()
	End()
}

// Maker makes rooms. The methods are called with the directory's mutex: they must neither wait nor call the directory.
type Maker[R Room] interface {
	// Make makes a room. settings are those of the API, nil for a room that a join opens.
	Make(name string, settings *admission.RoomSettings) R
	// Run starts the goroutine of a room, which ends when the channel is closed.
	Run(room R, end <-chan struct{})
	// Exited reports that the directory does not have the room. Another room may have the name at once.
	Exited(room R)
}

// Metrics receives the present numbers of rooms and participants.
type Metrics interface {
	Rooms(int)
	Participants(int)
}

// Config limits the rooms.
type Config struct {
	// Rooms is the maximum number of rooms. AutoCreate is set if joins open rooms.
	Rooms      int
	AutoCreate bool
	Bearers    admission.Limits
}

// Directory has the rooms of a node and their sessions. The methods are safe for concurrent use.
type Directory[R Room] struct {
	config  Config
	metrics Metrics
	maker   Maker[R]

	mu       sync.Mutex
	rooms    map[string]*occupied[R]
	sessions map[string]R
	// holdings are the rooms and places of each bearer.
	holdings *admission.Holdings
	gc       gcTrigger
	draining bool
	// empty is closed when the last room ends during a drain.
	empty chan struct{}
}

// New returns a directory without rooms.
func New[R Room](config Config, metrics Metrics, maker Maker[R]) *Directory[R] {
	return &Directory[R]{
		config: config, metrics: metrics, maker: maker, rooms: make(map[string]*occupied[R]),
		sessions: make(map[string]R), empty: make(chan struct{}), holdings: admission.NewHoldings(config.Bearers),
	}
}

// occupied is a room with at least one participant or join in progress, or one that the API has created.
type occupied[R Room] struct {
	room R
	// members counts participants and joins in progress, places the same for each bearer. The room ends with the last
	// member, or emptyTimeout later.
	members int
	places  map[admission.Bearer]int
	// opener is the bearer that opened the room, empty for a room of the API.
	opener admission.Bearer
	end    chan struct{}
	// emptyTimeout is the time for which the room remains without members, 0 for a room of which the API has no
	// settings. timer ends the room then. vacancy counts the times without members.
	emptyTimeout time.Duration
	timer        *time.Timer
	vacancy      int
}

// Enter finds or opens a room for a bearer and counts a member.
func (d *Directory[R]) Enter(name string, b admission.Bearer) (room R, refused *signal.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return room, signal.Errorf(signal.CodeDraining, "the server is about to stop")
	}
	o, ok := d.rooms[name]
	switch {
	case !ok && !d.config.AutoCreate:
		return room, signal.Errorf(signal.CodeNotFound,
			"there is no room %q, and joins do not create rooms (rooms.auto_create)", name)
	case !ok && len(d.rooms) >= d.config.Rooms:
		return room, signal.Errorf(signal.CodeLimit, "the server has the maximum of %d rooms (rooms.rooms)",
			d.config.Rooms)
	}
	if refused := d.holdings.Hold(b, !ok); refused != nil {
		return room, refused
	}
	if !ok {
		o = d.open(name, b, nil)
	}
	o.stopTimer()
	o.members++
	o.places[b]++
	return o.room, nil
}

// Leave releases a bearer's place in a room and ends the room with the last member.
func (d *Directory[R]) Leave(room R, b admission.Bearer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.rooms[room.Name()]
	if o == nil || o.room != room {
		// The room was dropped, together with its places.
		return
	}
	d.holdings.Release(b, 1, 0)
	o.members--
	if o.places[b]--; o.places[b] == 0 {
		delete(o.places, b)
	}
	switch {
	case o.members > 0:
	case o.emptyTimeout > 0 && !d.draining:
		d.vacate(o)
	default:
		d.remove(o)
		room.End()
	}
}

// Drop removes a room whose goroutine has ended by a panic, and releases the members' places.
func (d *Directory[R]) Drop(room R) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.rooms[room.Name()]
	if o == nil || o.room != room {
		return
	}
	for b, places := range o.places {
		d.holdings.Release(b, places, 0)
	}
	d.remove(o)
}

// remove ends a room. The caller holds the mutex, and emits the end of the room.
func (d *Directory[R]) remove(o *occupied[R]) {
	o.stopTimer()
	close(o.end)
	delete(d.rooms, o.room.Name())
	d.maker.Exited(o.room)
	d.holdings.Release(o.opener, 0, 1)
	d.metrics.Rooms(len(d.rooms))
	if d.draining && len(d.rooms) == 0 {
		close(d.empty)
	}
}

// Remember registers a session, so that the client can resume the session.
func (d *Directory[R]) Remember(session string, room R) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[session] = room
	d.metrics.Participants(len(d.sessions))
}

// Forget ends a session.
func (d *Directory[R]) Forget(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
	d.metrics.Participants(len(d.sessions))
	if d.gc.left(len(d.sessions)) {
		time.AfterFunc(collectDelay, runtime.GC)
	}
}

// RoomOf returns the room of a session, false if there is none.
func (d *Directory[R]) RoomOf(session string) (R, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	room, ok := d.sessions[session]
	return room, ok
}

// Room returns the room with a name, false if there is none.
func (d *Directory[R]) Room(name string) (room R, exists bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.rooms[name]; o != nil {
		return o.room, true
	}
	return room, false
}

// Named returns the room with a name, or all rooms if the name is empty.
func (d *Directory[R]) Named(name string) []R {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rooms []R
	for _, o := range d.rooms {
		if name == "" || o.room.Name() == name {
			rooms = append(rooms, o.room)
		}
	}
	return rooms
}

// Hold opens a room for the API, or sets the empty time of a present room.
func (d *Directory[R]) Hold(
	name string, settings admission.RoomSettings, onlyNew bool,
) (room R, created bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, exists := d.rooms[name]
	switch {
	case d.draining:
		return room, false, fmt.Errorf("%w: the server is about to stop", ErrRooms)
	case exists && onlyNew:
		return room, false, fmt.Errorf("%w: %q", ErrExists, name)
	case !exists && len(d.rooms) >= d.config.Rooms:
		return room, false, fmt.Errorf("%w: the server has the maximum of %d rooms (rooms.rooms)", ErrRooms,
			d.config.Rooms)
	case !exists:
		o = d.open(name, "", &settings)
		o.room.Begin()
	}
	o.emptyTimeout = settings.EmptyTimeout()
	if o.members == 0 {
		d.vacate(o)
	}
	return o.room, !exists, nil
}

// vacate ends a room without members after its empty time. The caller holds the mutex.
func (d *Directory[R]) vacate(o *occupied[R]) {
	o.vacancy++
	vacancy := o.vacancy
	o.stopTimer()
	o.timer = time.AfterFunc(o.emptyTimeout, func() { d.expire(o, vacancy) })
}

// expire ends a room that has been without members since a vacancy. A timer that was stopped may still fire.
func (d *Directory[R]) expire(o *occupied[R], vacancy int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rooms[o.room.Name()] == o && o.members == 0 && o.vacancy == vacancy {
		d.remove(o)
		o.room.End()
	}
}

func (o *occupied[R]) stopTimer() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// Release lets a room end with its last member, at once if the room has none. Release reports whether the room exists,
// and whether it has ended.
func (d *Directory[R]) Release(name string) (exists, ended bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.rooms[name]
	if o == nil {
		return false, false
	}
	o.emptyTimeout = 0
	if o.members > 0 {
		return true, false
	}
	d.remove(o)
	o.room.End()
	return true, true
}

// open adds a room, which the caller gives members or an empty time. The caller holds the mutex. settings is nil
// for a room that a join opens.
func (d *Directory[R]) open(name string, opener admission.Bearer, settings *admission.RoomSettings) *occupied[R] {
	o := &occupied[R]{
		room: d.maker.Make(name, settings), places: make(map[admission.Bearer]int), opener: opener,
		end: make(chan struct{}),
	}
	d.rooms[name] = o
	d.maker.Run(o.room, o.end)
	d.metrics.Rooms(len(d.rooms))
	return o
}

// Ended returns the answer to a join whose room has ended without an answer: the server stops, or the room's goroutine
// has panicked.
func (d *Directory[R]) Ended() *signal.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return signal.Errorf(signal.CodeDraining, "the server is about to stop")
	}
	return signal.Errorf(signal.CodeInternal, "internal error of the server: the room has ended")
}

// RefuseJoins refuses joins from now on, and ends rooms without participants. Participants resume their sessions.
func (d *Directory[R]) RefuseJoins() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return
	}
	d.draining = true
	if len(d.rooms) == 0 {
		close(d.empty)
	}
	for _, o := range d.rooms {
		if o.members == 0 {
			d.remove(o)
			o.room.End()
		}
	}
}

// Empty returns a channel that is closed when no room is left after RefuseJoins.
func (d *Directory[R]) Empty() <-chan struct{} { return d.empty }

// Counts returns the numbers of rooms, of sessions, and of bearers with a place or a room.
func (d *Directory[R]) Counts() (rooms, sessions, bearers int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rooms), len(d.sessions), d.holdings.Len()
}
