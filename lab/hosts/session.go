// Package hosts runs the roles of experiments on other hosts (vollab run --hosts): it reads the file of hosts, connects
// to the agents, compares their clocks with that of this machine, and starts programs as lab.Program.
//
// A Session is safe for concurrent use.
package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/agent"
	"github.com/volsfu/volsfu/lab/agent/role"
	"github.com/volsfu/volsfu/lab/agent/wire"
	"github.com/volsfu/volsfu/lab/environment"
)

const (
	// connecting is the time limit for a connection to an agent and its welcome.
	connecting = 15 * time.Second
	// patience is the time without a message after which an agent counts as gone. Agents answer a ping every
	// pingInterval.
	patience     = 15 * time.Second
	pingInterval = 2 * time.Second
)

// Errors of sessions.
var (
	// ErrHost reports an agent that cannot be reached, refuses, or is gone. The error names the host.
	ErrHost = errors.New("host")
	// ErrBuild reports a host with other programs than this one.
	ErrBuild = errors.New("the programs differ")

	errSilent = errors.New("no time of the host's clock is known")
)

// Session is a set of connected hosts.
type Session struct {
	file *File
	// data is this machine's folder of the test data.
	data string
	// machines are the connected hosts by name.
	machines map[string]*machine
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// machine is a connected host.
type machine struct {
	name    string
	host    Host
	conn    *wire.Conn
	clock   *comparison
	welcome *wire.Welcome

	// starting is held while a process is started.
	starting sync.Mutex

	mu        sync.Mutex
	processes map[int]*process
	numbers   int
	questions map[int]chan wire.Usage
	// lost is closed when the connection is lost; failure is the reason.
	lost    chan struct{}
	failure error
}

// Options configure a session.
type Options struct {
	// Roles are those that have to have a host, in any order. Other hosts are not connected.
	Roles []string
	// Programs is this machine's folder of programs, which each host must have, too.
	Programs string
	// Environment describes this machine.
	Environment *environment.Environment
	// Data is this machine's folder of the test data.
	Data string
}

// Open connects to the agents of the roles' hosts, checks that they have the same programs and test data, and waits
// until their clocks are known. Errors about hosts wrap ErrHost.
func Open(ctx context.Context, f *File, o Options) (s *Session, err error) {
	if err := f.Check(o.Roles); err != nil {
		return nil, err
	}
	key, err := wire.ReadKey(f.Key)
	if err != nil {
		return nil, fmt.Errorf("key: %w", err)
	}
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s = &Session{file: f, machines: make(map[string]*machine), cancel: cancel, data: o.Data}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	sums := agent.Sums(o.Programs)
	for _, name := range slices.Sorted(maps.Values(f.Roles)) {
		if s.machines[name] != nil || !slices.ContainsFunc(o.Roles, func(r string) bool { return f.Roles[r] == name }) {
			continue
		}
		m := &machine{name: name, host: f.Hosts[name], clock: &comparison{}, processes: make(map[int]*process),
			questions: make(map[int]chan wire.Usage), lost: make(chan struct{})}
		if err := s.connect(ctx, running, m, key, sums, &o); err != nil {
			return s, fmt.Errorf("%w %s: %w", ErrHost, name, err)
		}
	}
	return s, nil
}

// connect connects to the agent of a host.
func (s *Session) connect(ctx, running context.Context, m *machine, key *wire.Key, sums map[string]string,
	o *Options) error {
	early, cancel := context.WithTimeout(ctx, connecting)
	defer cancel()
	var err error
	if m.conn, m.welcome, err = greet(early, key, m.host.Agent, wire.PurposeControl); err != nil {
		return err
	}
	s.machines[m.name] = m
	s.running.Go(func() { m.read() })
	s.running.Go(func() { m.ping(running) })
	if err := m.check(sums, o); err != nil {
		return err
	}
	conn, _, err := greet(early, key, m.host.Agent, wire.PurposeClock)
	if err != nil {
		return err
	}
	known := make(chan struct{})
	stop := context.AfterFunc(running, func() { _ = conn.Close() })
	s.running.Go(func() {
		defer stop()
		if err := m.clock.ask(running, conn, func() { close(known) }); err != nil {
			m.fail(fmt.Errorf("connection for the clock: %w", err))
		}
		_ = conn.Close()
	})
	select {
	case <-known:
	case <-m.lost:
		return m.failure
	case <-early.Done():
		return fmt.Errorf("comparing the clocks: %w", early.Err())
	}
	if s.file.Clocks == PTP {
		return m.checkPTP()
	}
	return nil
}

// greet connects to an agent and exchanges the first messages.
func greet(ctx context.Context, key *wire.Key, address string, purpose wire.Purpose) (*wire.Conn, *wire.Welcome,
	error) {
	conn, err := key.Dial(ctx, address)
	switch {
	case errors.Is(err, wire.ErrKey):
		return nil, nil, fmt.Errorf("%w; copy the file of vollab agent key to every host", err)
	case err != nil:
		return nil, nil, fmt.Errorf("%w; vollab agent must run there", err)
	}
	var m *wire.Message
	if err = conn.Send(&wire.Message{Type: wire.TypeHello,
		Hello: &wire.Hello{Protocol: wire.Protocol, Purpose: purpose}}); err == nil {
		m, err = conn.Receive(connecting)
	}
	switch {
	case err != nil:
	case m.Type == wire.TypeRefused:
		err = errors.New(m.Text)
	case m.Type != wire.TypeWelcome || m.Welcome == nil:
		err = fmt.Errorf("%w: %.32q in place of a welcome", wire.ErrMessage, m.Type)
	default:
		return conn, m.Welcome, nil
	}
	return nil, nil, errors.Join(err, conn.Close())
}

// check reports different programs or test data. On another platform, programs of the same commit have other sums.
func (m *machine) check(sums map[string]string, o *Options) error {
	here, there := o.Environment, m.welcome.Environment
	if there == nil {
		return fmt.Errorf("%w: a welcome without environment", wire.ErrMessage)
	}
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sum, found := m.welcome.Programs[name]
		switch {
		case !found:
			return fmt.Errorf("%w: the host has no %s beside its vollab", ErrBuild, name)
		case m.welcome.Platform == agent.Platform() && sum != sums[name]:
			return fmt.Errorf("%w: %s has the SHA-256 %.16s there and %.16s here, commit %s there and %s here; copy "+
				"the same files to every host", ErrBuild, name, sum, sums[name], named(there.Commit),
				named(here.Commit))
		}
	}
	if m.welcome.Platform != agent.Platform() && (here.Commit == "" || here.Commit != there.Commit) {
		return fmt.Errorf("%w: the host has commit %s on %s, this machine has commit %s on %s", ErrBuild,
			named(there.Commit), m.welcome.Platform, named(here.Commit), agent.Platform())
	}
	if here.Data != nil && there.Data != nil && here.Data.Hash != there.Data.Hash {
		return fmt.Errorf("the test data differs: SHA-256 %.16s there and %.16s here", there.Data.Hash, here.Data.Hash)
	}
	return nil
}

// named returns a commit, or a word for none.
func named(commit string) string {
	if commit == "" {
		return "unknown"
	}
	return commit
}

// ptpBound is the error of the system's clock behind the clock of ptp4l, which phc2sys or software timestamps set.
const ptpBound = 10 * time.Microsecond

// checkPTP reports a host whose clock is not that of this machine, although clocks are compared by PTP.
func (m *machine) checkPTP() error {
	if m.welcome.PTP == nil {
		return fmt.Errorf("clocks: ptp: %s", m.welcome.PTPError)
	}
	o, err := m.clock.at(time.Now())
	if err != nil {
		return err
	}
	if o.Ahead.Abs() > o.Bound+m.ptpBound() {
		return fmt.Errorf("clocks: ptp: ptp4l reports %v, but round trips show that the clock is ahead by %v, within "+
			"%v", m.welcome.PTP.Offset, o.Ahead, o.Bound)
	}
	return nil
}

// ptpBound returns the error bound of a clock by PTP: the last offset from the master, by ptp4l, and ptpBound.
func (m *machine) ptpBound() time.Duration { return m.welcome.PTP.Offset.Abs() + ptpBound }

// Close ends all processes of the session and its connections.
func (s *Session) Close() {
	s.cancel()
	for _, m := range s.machines {
		_ = m.conn.Close()
	}
	s.running.Wait()
}

// ping keeps the connection until the context ends.
func (m *machine) ping(ctx context.Context) {
	ticker := time.NewTicker(pingInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if err := m.conn.Send(&wire.Message{Type: wire.TypePing}); err != nil {
				m.fail(err)
				return
			}
		case <-m.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// fail ends the connection, and with it the goroutine of read. Only the first call has an effect.
func (m *machine) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.lost:
		return
	default:
	}
	m.failure = err
	close(m.lost)
	_ = m.conn.Close()
}

// read handles messages until the connection ends, and then ends all processes.
func (m *machine) read() {
	for {
		message, err := m.conn.Receive(patience)
		if err == nil && message.Type == wire.TypeRefused {
			err = errors.New(message.Text)
		}
		if err != nil {
			m.fail(err)
			break
		}
		m.handle(message)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range m.processes {
		p.end(fmt.Errorf("%w %s: connection lost: %w", ErrHost, m.name, m.failure))
	}
	clear(m.processes)
}

// handle handles a message.
func (m *machine) handle(message *wire.Message) {
	m.mu.Lock()
	p := m.processes[message.Process]
	var question chan wire.Usage
	switch message.Type {
	case wire.TypeEnded:
		delete(m.processes, message.Process)
	case wire.TypeUsage:
		if message.Usage != nil {
			question = m.questions[message.Usage.Number]
			delete(m.questions, message.Usage.Number)
		}
	}
	m.mu.Unlock()
	if question != nil {
		question <- *message.Usage
	}
	if p != nil {
		p.handle(message)
	}
}

// usage asks for the processor times of the host, and of a process, 0 for none.
func (m *machine) usage(process int) (wire.Usage, error) {
	answer := make(chan wire.Usage, 1)
	m.mu.Lock()
	m.numbers++
	number := m.numbers
	m.questions[number] = answer
	m.mu.Unlock()
	if err := m.conn.Send(&wire.Message{Type: wire.TypeUsage,
		Usage: &wire.Usage{Number: number, Process: process}}); err != nil {
		m.fail(err)
	}
	select {
	case u := <-answer:
		return u, nil
	case <-m.lost:
		return wire.Usage{}, m.failure
	}
}

// of returns the host of a role.
func (s *Session) of(role string) (*machine, error) {
	m := s.machines[s.file.Roles[role]]
	if m == nil {
		return nil, fmt.Errorf("%w: the role %s has no host", ErrHost, role)
	}
	return m, nil
}

// Address returns the IP address of a role's host, empty for an unknown role.
func (s *Session) Address(role string) string {
	m, err := s.of(role)
	if err != nil {
		return ""
	}
	return m.host.Address
}

// Link returns the network between the hosts.
func (s *Session) Link() Link { return s.file.Link }

// SameClock reports whether all hosts have the same clock, by PTP.
func (s *Session) SameClock() bool { return s.file.Clocks == PTP }

// Offset returns how far the clock of a role's host is ahead when it shows a time. With clocks by PTP, it is 0 with the
// bound of PTP.
func (s *Session) Offset(role string, host time.Time) (Offset, error) {
	return s.offset(role, func(c *comparison) (Offset, error) { return c.at(host) })
}

func (s *Session) offset(role string, of func(*comparison) (Offset, error)) (Offset, error) {
	m, err := s.of(role)
	if err != nil {
		return Offset{}, err
	}
	if s.SameClock() {
		return Offset{Bound: m.ptpBound()}, nil
	}
	o, err := of(m.clock)
	if err != nil {
		return Offset{}, fmt.Errorf("%w %s: %w", ErrHost, m.name, err)
	}
	return o, nil
}

// boundInterval is the interval at which Bound reads the bounds of clocks.
const boundInterval = 100 * time.Millisecond

// Bound returns the largest possible error of times between the hosts of two roles from one time of this machine to
// another: the sum of the bounds of both clocks, or 0 if both roles are on one host.
func (s *Session) Bound(one, other string, begin, end time.Time) (bound time.Duration, err error) {
	if s.file.Roles[one] == s.file.Roles[other] {
		return 0, nil
	}
	for at := begin; !at.After(end); at = at.Add(boundInterval) {
		sum := time.Duration(0)
		for _, role := range []string{one, other} {
			o, err := s.offset(role, func(c *comparison) (Offset, error) { return c.here(at) })
			if err != nil {
				return 0, err
			}
			sum += o.Bound
		}
		bound = max(bound, sum)
	}
	return bound, nil
}

// MachineTimes returns the processor times of all hosts, by name.
func (s *Session) MachineTimes() (map[string]lab.MachineTime, error) {
	times := make(map[string]lab.MachineTime)
	for name, m := range s.machines {
		u, err := m.usage(0)
		if err != nil {
			return nil, fmt.Errorf("%w %s: %w", ErrHost, name, err)
		}
		times[name] = u.Machine
	}
	return times, nil
}

// Busiest returns the largest share of processor time that a host used between two calls of MachineTimes, 0 to 1.
func Busiest(before, after map[string]lab.MachineTime) (busy float64) {
	for name, t := range after {
		busy = max(busy, t.BusySince(before[name]))
	}
	return busy
}

// Start starts a program of the lab on the host of a role. Files that the program reads are copied before the start,
// and files that it writes are copied at the end. The other parameters and the error are those of lab.StartProgram.
func (s *Session) Start(roleName, name, file string, watch io.Writer, arguments ...string) (*lab.Program,
	error) {
	m, err := s.of(roleName)
	if err != nil {
		return nil, err
	}
	plan, err := role.NewPlan(file, arguments, s.data)
	if err != nil {
		return nil, err
	}
	return lab.StartRunner(name+" on "+m.name, watch, func(output, errors io.Writer) (lab.Runner, error) {
		return m.start(plan, output, errors)
	})
}

// start sends the files of a plan and starts its program.
func (m *machine) start(plan *role.Plan, output, errors io.Writer) (*process, error) {
	p := &process{machine: m, plan: plan, output: output, errors: errors, ended: make(chan struct{}),
		files: make(map[string]*os.File)}
	// The numbers of processes reach the agent in their order.
	m.starting.Lock()
	defer m.starting.Unlock()
	if err := m.register(p); err != nil {
		return nil, err
	}
	for name, path := range plan.Inputs {
		if err := m.sendFile(p.number, name, path); err != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			delete(m.processes, p.number)
			return nil, err
		}
	}
	err := m.conn.Send(&wire.Message{Type: wire.TypeStart, Process: p.number,
		Start: &wire.Start{Program: plan.Program, Arguments: plan.Arguments}})
	return p, err
}

// register adds a process with a new number.
func (m *machine) register(p *process) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-m.lost:
		return fmt.Errorf("%w %s: connection lost: %w", ErrHost, m.name, m.failure)
	default:
	}
	m.numbers++
	p.number = m.numbers
	m.processes[p.number] = p
	return nil
}

// sendFile sends a file that a process reads.
func (m *machine) sendFile(number int, name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	for {
		part := data[:min(len(data), wire.Chunk)]
		data = data[len(part):]
		if err := m.conn.Send(&wire.Message{Type: wire.TypeInput, Process: number,
			File: &wire.File{Name: name, Data: part, Last: len(data) == 0}}); err != nil || len(data) == 0 {
			return err
		}
	}
}

// Description describes a host, for the report.
type Description struct {
	Name    string   `json:"host"`
	Address string   `json:"address"`
	Roles   []string `json:"roles"`
	// Environment describes the host, and Clock its clock.
	Environment *environment.Environment `json:"environment"`
	Clock       State                    `json:"clock"`
	// PTP is the state of the precision time protocol, nil if the clock is estimated.
	PTP *wire.PTP `json:"ptp,omitempty"`
}

// Descriptions describes all hosts of a session.
type Descriptions struct {
	// Link is the network between the hosts.
	Link   string        `json:"link"`
	Clocks Clocks        `json:"clocks"`
	Hosts  []Description `json:"hosts"`
}

// Describe describes the hosts and their clocks so far.
func (s *Session) Describe() *Descriptions {
	d := &Descriptions{Link: s.file.Link.String(), Clocks: s.file.Clocks}
	for _, name := range slices.Sorted(maps.Keys(s.machines)) {
		m := s.machines[name]
		one := Description{Name: name, Address: m.host.Address, Environment: m.welcome.Environment,
			Clock: m.clock.state()}
		for _, role := range slices.Sorted(maps.Keys(s.file.Roles)) {
			if s.file.Roles[role] == name {
				one.Roles = append(one.Roles, role)
			}
		}
		if s.SameClock() {
			one.PTP = m.welcome.PTP
		}
		d.Hosts = append(d.Hosts, one)
	}
	return d
}

// Clocks returns the clocks of all hosts so far, by host; nil without a session.
func (s *Session) Clocks() map[string]State {
	if s == nil {
		return nil
	}
	clocks := make(map[string]State)
	for name, m := range s.machines {
		clocks[name] = m.clock.state()
	}
	return clocks
}

// SetClocks replaces the clocks of hosts, which a later part of a run has observed.
func (d *Descriptions) SetClocks(clocks map[string]State) {
	if d == nil {
		return
	}
	for i := range d.Hosts {
		if state, known := clocks[d.Hosts[i].Name]; known {
			d.Hosts[i].Clock = state
		}
	}
}

// String names the hosts with their roles, the link and the clocks; empty without hosts.
func (d *Descriptions) String() string {
	if d == nil {
		return ""
	}
	parts := []string{"link: " + d.Link, "clocks: " + string(d.Clocks)}
	for _, h := range d.Hosts {
		parts = append(parts, h.Address+" as "+strings.Join(h.Roles, ", "))
	}
	return strings.Join(parts, "; ")
}

// Lines returns the properties of the hosts, for people.
func (d *Descriptions) Lines() (list []environment.Line) {
	if d == nil {
		return nil
	}
	list = append(list, environment.Line{Name: "link between the hosts", Text: d.Link})
	for _, h := range d.Hosts {
		at := "host " + h.Name
		clock := fmt.Sprintf("estimated from round trips, of which the quickest took %.3f ms: ahead of the "+
			"controller's by %.3f ms at the beginning and %.3f ms at the end, error at most %.3f ms", h.Clock.Quickest,
			h.Clock.First, h.Clock.Last, h.Clock.Bound)
		if h.PTP != nil {
			clock = fmt.Sprintf("by PTP, port %s, %v from the master; round trips show %.3f ms, within %.3f ms",
				h.PTP.Port, h.PTP.Offset, h.Clock.Last, h.Clock.Bound)
		}
		list = append(list, environment.Line{Name: at, Text: h.Address + ", roles " + strings.Join(h.Roles, ", ")},
			environment.Line{Name: at + ": clock", Text: clock})
		for _, line := range h.Environment.Lines() {
			list = append(list, environment.Line{Name: at + ": " + line.Name, Text: line.Text})
		}
	}
	return list
}

// Listen returns a listen address on a role's host, with port 0.
func (s *Session) Listen(role string) string { return net.JoinHostPort(s.Address(role), "0") }
