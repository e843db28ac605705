package interop

import (
	"bufio"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// unityPuppet is a program of the Unity package's core that follows commands and prints events, line by line.
type unityPuppet struct {
	stdin   io.WriteCloser
	writing sync.Mutex

	mu    sync.Mutex
	lines []string
	// mark is the position from which lines are searched.
	mark int
}

// startUnity starts a program of the core, which ends with the test. If handle is not nil, it gets every line, from one
// goroutine.
func startUnity(t *testing.T, handle func(*unityPuppet, string), args ...string) *unityPuppet {
	t.Helper()
	cmd := exec.Command("mono", args...)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var complaints strings.Builder
	cmd.Stderr = &complaints
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	u := &unityPuppet{stdin: stdin}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		u.read(stdout, handle)
	}()
	t.Cleanup(func() {
		// The end of its input ends the program. One that does not react is killed.
		_ = stdin.Close()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Error("the program does not end")
			_ = cmd.Process.Kill()
			<-ended
		}
		if err := cmd.Wait(); err != nil || complaints.Len() > 0 {
			t.Errorf("the program ended with %v:\n%s", err, complaints.String())
		}
		if t.Failed() {
			u.tell(t)
		}
	})
	return u
}

func (u *unityPuppet) read(stdout io.Reader, handle func(*unityPuppet, string)) {
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		line := lines.Text()
		u.mu.Lock()
		u.lines = append(u.lines, line)
		u.mu.Unlock()
		if handle != nil {
			handle(u, line)
		}
	}
}

// tell logs the program's last lines, each one truncated.
func (u *unityPuppet) tell(t *testing.T) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, line := range u.lines[max(0, len(u.lines)-40):] {
		t.Logf("%.120s", line)
	}
}

// say sends the program a command. If it has ended, the command is lost, which the test notices by its missing effect.
func (u *unityPuppet) say(words ...string) {
	u.writing.Lock()
	defer u.writing.Unlock()
	_, _ = io.WriteString(u.stdin, strings.Join(words, " ")+"\n")
}

// do sets the mark and sends the program a command.
func (u *unityPuppet) do(words ...string) {
	u.mu.Lock()
	u.mark = len(u.lines)
	u.mu.Unlock()
	u.say(words...)
}

// said returns the lines since the mark that have the given prefix, without it.
func (u *unityPuppet) said(beginning string) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	var found []string
	for _, line := range u.lines[u.mark:] {
		if rest, ok := strings.CutPrefix(line, beginning); ok {
			found = append(found, strings.TrimSpace(rest))
		}
	}
	return found
}

// await waits for a line since the mark with the given prefix, and returns the remainder of the first one.
func (u *unityPuppet) await(t *testing.T, beginning string) string {
	t.Helper()
	var found []string
	eventually(t, "the program says "+beginning, func() bool {
		found = u.said(beginning)
		return len(found) > 0
	})
	return found[0]
}
