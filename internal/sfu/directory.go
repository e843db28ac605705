package sfu

import (
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/volsfu/volsfu/internal/sfu/admission"
	"github.com/volsfu/volsfu/pkg/signal"
)

// directory has the rooms of a node and their sessions. It opens and ends rooms. The methods are safe for concurrent
// use.
type directory struct {
	config  *Config
	metrics Metrics
	// newRoom makes a room, run starts its goroutine.
	newRoom func(name string) *Room
	run     func(*occupied)

	mu       sync.Mutex
	rooms    map[string]*occupied
	sessions map[string]*Room
	// holdings are the rooms and places of each bearer.
	holdings *admission.Holdings
	gc       gcTrigger
	draining bool
	// empty is closed when the last room ends during a drain.
	empty chan struct{}
}

// init makes the directory of a node, without rooms.
func (d *directory) init(n *Node) {
	d.config, d.metrics = &n.config, n.metrics
	d.newRoom = func(name string) *Room { return newRoom(n, name) }
	d.run = func(o *occupied) {
		n.running.Add(1)
		go o.room.run(o.end)
	}
	d.rooms, d.sessions, d.empty = make(map[string]*occupied), make(map[string]*Room), make(chan struct{})
	d.holdings = admission.NewHoldings(admission.Limits{Rooms: n.config.BearerRooms, Places: n.config.BearerPlaces})
}

// occupied is a room with at least one participant or join in progress, or one that the API has created.
type occupied struct {
	room *Room
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

// enter finds or opens a room for a bearer and counts a member.
func (d *directory) enter(name string, b admission.Bearer) (*Room, *signal.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return nil, refuse(signal.CodeDraining, "the server is about to stop")
	}
	o, ok := d.rooms[name]
	switch {
	case !ok && !d.config.AutoCreate:
		return nil, refuse(signal.CodeNotFound,
			"there is no room %q, and joins do not create rooms (rooms.auto_create)", name)
	case !ok && len(d.rooms) >= d.config.Rooms:
		return nil, refuse(signal.CodeLimit, "the server has the maximum of %d rooms (rooms.rooms)", d.config.Rooms)
	}
	if refused := d.holdings.Hold(b, !ok); refused != nil {
		return nil, refused
	}
	if !ok {
		o = d.open(name, b, nil)
	}
	o.stopTimer()
	o.members++
	o.places[b]++
	return o.room, nil
}

// leave releases a bearer's place in a room and ends the room with the last member.
func (d *directory) leave(room *Room, b admission.Bearer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.rooms[room.name]
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
		room.end()
	}
}

// drop removes a room whose goroutine has ended by a panic, and releases the members' places.
func (d *directory) drop(room *Room) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o := d.rooms[room.name]
	if o == nil || o.room != room {
		return
	}
	for b, places := range o.places {
		d.holdings.Release(b, places, 0)
	}
	d.remove(o)
}

// remove ends a room. The caller holds the node's mutex, and emits the end of the room.
func (d *directory) remove(o *occupied) {
	o.stopTimer()
	close(o.end)
	delete(d.rooms, o.room.name)
	o.room.span.exited()
	d.holdings.Release(o.opener, 0, 1)
	d.metrics.Rooms(len(d.rooms))
	if d.draining && len(d.rooms) == 0 {
		close(d.empty)
	}
}

// remember registers a session, so that the client can resume the session.
func (d *directory) remember(p *participant) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sessions[p.Session] = p.room
	d.metrics.Participants(len(d.sessions))
}

// forget ends a session. forget is called by the room's goroutine.
func (d *directory) forget(p *participant) {
	d.endSession(p.Session)
	d.leave(p.room, p.bearer)
}

func (d *directory) endSession(session string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.sessions, session)
	d.metrics.Participants(len(d.sessions))
	if d.gc.left(len(d.sessions)) {
		time.AfterFunc(collectDelay, runtime.GC)
	}
}

func (d *directory) roomOf(session string) *Room {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.sessions[session]
}

// HasSession reports whether a session lives: its client is in a room, or its place is kept for its return.
func (d *directory) HasSession(session string) bool { return d.roomOf(session) != nil }

// room returns the room with a name, nil if there is none.
func (d *directory) room(name string) *Room {
	d.mu.Lock()
	defer d.mu.Unlock()
	if o := d.rooms[name]; o != nil {
		return o.room
	}
	return nil
}

// named returns the room with a name, or all rooms if the name is empty.
func (d *directory) named(name string) []*Room {
	d.mu.Lock()
	defer d.mu.Unlock()
	var rooms []*Room
	for _, o := range d.rooms {
		if name == "" || o.room.name == name {
			rooms = append(rooms, o.room)
		}
	}
	return rooms
}

// hold opens a room for the API, or sets the empty time of a present room.
func (d *directory) hold(name string, settings RoomSettings, onlyNew bool) (room *Room, created bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	o, exists := d.rooms[name]
	switch {
	case d.draining:
		return nil, false, fmt.Errorf("%w: the server is about to stop", ErrRooms)
	case exists && onlyNew:
		return nil, false, fmt.Errorf("%w: %q", ErrExists, name)
	case !exists && len(d.rooms) >= d.config.Rooms:
		return nil, false, fmt.Errorf("%w: the server has the maximum of %d rooms (rooms.rooms)", ErrRooms,
			d.config.Rooms)
	case !exists:
		o = d.open(name, "", &settings)
		o.room.begin()
	}
	o.emptyTimeout = settings.emptyTimeout()
	if o.members == 0 {
		d.vacate(o)
	}
	return o.room, !exists, nil
}

// vacate ends a room without members after its empty time. The caller holds the node's mutex.
func (d *directory) vacate(o *occupied) {
	o.vacancy++
	vacancy := o.vacancy
	o.stopTimer()
	o.timer = time.AfterFunc(o.emptyTimeout, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.rooms[o.room.name] == o && o.members == 0 && o.vacancy == vacancy {
			d.remove(o)
			o.room.end()
		}
	})
}

func (o *occupied) stopTimer() {
	if o.timer != nil {
		o.timer.Stop()
	}
}

// release lets a room end with its last member, at once if the room has none. release reports whether the room exists,
// and whether it has ended.
func (d *directory) release(name string) (exists, ended bool) {
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
	o.room.end()
	return true, true
}

// open adds a room, which the caller gives members or an empty time. The caller holds the node's mutex. settings is nil
// for a room that a join opens.
func (d *directory) open(name string, opener admission.Bearer, settings *RoomSettings) *occupied {
	o := &occupied{
		room: d.newRoom(name), places: make(map[admission.Bearer]int), opener: opener, end: make(chan struct{}),
	}
	if settings != nil {
		o.room.settings = settings
		o.room.census.Store(&census{})
	}
	d.rooms[name] = o
	o.room.span.tell(Entered{})
	d.run(o)
	d.metrics.Rooms(len(d.rooms))
	return o
}

// ended returns the answer to a join whose room has ended without an answer: the server stops, or the room's goroutine
// has panicked.
func (d *directory) ended() *signal.Error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.draining {
		return refuse(signal.CodeDraining, "the server is about to stop")
	}
	return refuse(signal.CodeInternal, "internal error of the server: the room has ended")
}

// RefuseJoins refuses joins from now on, and ends rooms without participants. Participants resume their sessions.
func (d *directory) RefuseJoins() {
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
			o.room.end()
		}
	}
}
