package main_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/volsfu/volsfu/test/testbed"
)

// peer is a running testdata/peer.c.
type peer struct {
	t       *testing.T
	command *exec.Cmd
	input   io.WriteCloser
	reading sync.WaitGroup
	errors  bytes.Buffer

	mu    sync.Mutex
	lines []string
}

func start(t *testing.T, program string, args ...string) *peer {
	t.Helper()
	return startBy(t, (*exec.Cmd).Start, program, args...)
}

// startBy starts a peer by a function that calls Start of its command.
func startBy(t *testing.T, begin func(*exec.Cmd) error, program string, args ...string) *peer {
	t.Helper()
	p := &peer{t: t, command: exec.CommandContext(t.Context(), program, args...)}
	output, err := p.command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.input, err = p.command.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.command.Stderr = &p.errors
	if err := begin(p.command); err != nil {
		t.Fatal(err)
	}
	p.reading.Go(func() {
		for scanner := bufio.NewScanner(output); scanner.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, scanner.Text())
			p.mu.Unlock()
		}
	})
	return p
}

// said counts lines with a prefix, starting at a position in all lines.
func (p *peer) said(from int, beginning string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	count := 0
	for _, line := range p.lines[from:] {
		if strings.HasPrefix(line, beginning) {
			count++
		}
	}
	return count
}

func (p *peer) lineCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.lines)
}

// ask sends a command to the peer, and waits for its line with the given prefix.
func (p *peer) ask(command, answer string) {
	p.t.Helper()
	from := p.lineCount()
	if _, err := io.WriteString(p.input, command+"\n"); err != nil {
		p.t.Fatal(err)
	}
	p.await(fmt.Sprintf("the peer answers %q to %q", answer, command), func() bool { return p.said(from, answer) > 0 })
}

// await waits for a condition that involves the peer.
func (p *peer) await(what string, condition func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), generous)
	defer cancel()
	if err := testbed.Await(ctx, what, condition); err != nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		last := p.lines[max(0, len(p.lines)-20):]
		p.t.Fatalf("%v; its last lines:\n%s\n%s", err, strings.Join(last, "\n"), p.errors.String())
	}
}

// finish ends the peer, and compares every frame that it reported with the expected one.
func (p *peer) finish() (frames int) {
	p.t.Helper()
	_ = p.input.Close()
	p.reading.Wait()
	if err := p.command.Wait(); err != nil || p.errors.Len() > 0 {
		p.t.Errorf("the peer ended with %v\n%s", err, p.errors.String())
	}
	if p.said(0, "closed") != 1 {
		p.t.Errorf("the peer did not close its session")
	}
	for _, line := range p.lines {
		var number, tile, quality uint32
		if n, _ := fmt.Sscanf(line, "frame gopher desk %d %d %d ", &tile, &quality, &number); n != 3 {
			continue
		}
		data := frameData(number, tile, quality)
		want := fmt.Sprintf("frame gopher desk %d %d %d %d %016x desk", tile, quality, number, len(data), hashOf(data))
		if line != want {
			p.t.Errorf("the peer received %q, expected %q", line, want)
		}
		frames++
	}
	return frames
}
