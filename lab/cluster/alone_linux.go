package cluster

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/test/claim"
	"github.com/volsfu/volsfu/test/exposition"
)

const (
	// aloneTime is the time after which an idle server is measured.
	aloneTime = 5 * time.Second
	// hotPathTime is the measured time of each program under load.
	hotPathTime = 40 * time.Second
)

// alone compares a server without --cluster with a program that has no code of clusters.
func alone(ctx context.Context, b *bench) (lines []claim.Line, err error) {
	if err := enterOwnNetwork(); err != nil {
		return nil, err
	}
	if err := raise("lo"); err != nil {
		return nil, err
	}
	program, err := b.program()
	if err != nil {
		return nil, err
	}
	here, err := inspect(ctx, program)
	if err != nil {
		return nil, err
	}
	static := int64(0)
	if here.static {
		static = 1
	}
	lines = append(lines, claim.Exactly("the program is static", static, "", 1))
	if b.options.Before == "" {
		return append(lines, claim.Skip("differences to a program without clusters",
			"--before names no program without the code of clusters")), nil
	}
	before, err := inspect(ctx, b.options.Before)
	if err != nil {
		return lines, err
	}
	different := int64(0)
	if !slices.Equal(here.ports, before.ports) {
		different = 1
		b.progress.Say("  ports: %v, before %v", here.ports, before.ports)
	}
	lines = append(lines,
		claim.Exactly("ports unlike those of the program without clusters", different, "", 0),
		claim.Exactly("goroutines more", int64(here.goroutines-before.goroutines), "", 0),
		claim.AtMost("memory more", here.resident-before.resident, "MB", 5),
		claim.AtMost("program larger", here.size-before.size, "MB", 14),
	)
	if b.short {
		return lines, nil
	}
	result, err := hotpath.Forward(ctx, hotpath.Options{Load: hotpath.DefaultLoad(), ServerBin: program,
		Pacing: hotpath.PacingOn, ComparePaced: true, CompareBin: b.options.Before, Duration: hotPathTime,
		Progress: b.progress})
	if err != nil {
		return lines, err
	}
	return append(lines, claim.AtMost("processor time per forwarded packet, relative to the other program",
		*result.CPURatio, "", 1.03)), nil
}

// inspected has the properties of a program and of its idle server.
type inspected struct {
	static bool
	// size and resident are in MB.
	size, resident float64
	goroutines     int
	// ports lists the protocols of open ports, without the numbers, which the system chooses.
	ports []string
}

// inspect starts a server without a cluster.
func inspect(ctx context.Context, program string) (i inspected, err error) {
	info, err := os.Stat(program)
	if err != nil {
		return i, err
	}
	i.size = float64(info.Size()) / 1e6
	file, err := elf.Open(program)
	if err != nil {
		return i, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	i.static = !slices.ContainsFunc(file.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
	s, err := lab.StartServer(ctx, program)
	if err != nil {
		return i, err
	}
	defer s.Kill()
	if err := lab.Pause(ctx, aloneTime); err != nil {
		return i, err
	}
	counts, err := exposition.Scrape(ctx, "http://"+s.Admin+"/metrics")
	if err != nil {
		return i, err
	}
	i.goroutines = int(counts["go_goroutines"])
	resident, err := lab.ResidentBytes(s.PID())
	i.resident = resident / 1e6
	if err != nil {
		return i, err
	}
	i.ports, err = openPorts(s.PID())
	return i, err
}

// openPorts lists the protocol and the local address of each open port in the namespace of a process, where nothing
// else listens.
func openPorts(pid int) (list []string, err error) {
	// The states of a TCP socket that listens and of a UDP socket that is not connected (include/net/tcp_states.h).
	states := map[string]string{"tcp": "0A", "tcp6": "0A", "udp": "07", "udp6": "07"}
	for protocol, state := range states {
		table, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, protocol))
		if err != nil {
			return nil, err
		}
		for _, line := range strings.Split(string(table), "\n") {
			if fields := strings.Fields(line); len(fields) > 3 && fields[3] == state {
				address, _, _ := strings.Cut(fields[1], ":")
				list = append(list, protocol+" "+address)
			}
		}
	}
	slices.Sort(list)
	return list, nil
}
