package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/test/claim"
)

// The flags with which another process is started for one check.
const (
	onlyFlag   = "only"
	jsonFlag   = "json"
	insideFlag = "inside"
)

// measurement runs a check and adds the result to a report.
type measurement func(ctx context.Context, report *lab.Report, number int, check lab.Check, progress lab.Progress)

// measureHere runs the check in this process.
func measureHere(ctx context.Context, report *lab.Report, number int, check lab.Check, progress lab.Progress) {
	report.Run(ctx, number, check, progress)
}

// measureInSubprocess measures each check of a collection in a process of its own. Many checks run a server in their
// process. If that server crashes, the process ends, and the report must contain the crash.
func measureInSubprocess(name string, flags *pflag.FlagSet, said io.Writer) (measurement, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find the program of the checks: %w", err)
	}
	arguments := []string{"check", name, "--" + jsonFlag, "--" + insideFlag}
	flags.Visit(func(f *pflag.Flag) {
		if f.Name != onlyFlag && f.Name != jsonFlag {
			arguments = append(arguments, "--"+f.Name+"="+f.Value.String())
		}
	})
	return subprocess{self, arguments, said}.measure, nil
}

// subprocess is a program that runs one check and prints a report as JSON.
type subprocess struct {
	program   string
	arguments []string
	// said receives the program's standard error.
	said io.Writer
}

// endPatience bounds the time of a check to end after an interruption: the check stops its programs one after the
// other, and each program has 10 s.
const endPatience = time.Minute

// measure implements measurement.
func (a subprocess) measure(ctx context.Context, report *lab.Report, number int, check lab.Check, _ lab.Progress) {
	begun, load := time.Now(), lab.LoadAverage()
	got, err := a.run(ctx, number)
	if err != nil {
		report.Add(lab.Section{
			Number: number, Name: check.Name(), Lines: []claim.Line{}, Error: err.Error(),
			Seconds: time.Since(begun).Seconds(), LoadBefore: load,
		}, ctx.Err() != nil)
		return
	}
	for _, section := range got.Sections {
		report.Add(section, ctx.Err() != nil)
	}
}

// run runs the program for one check. Without a report, the error contains the program's exit status.
func (a subprocess) run(ctx context.Context, number int) (*lab.Report, error) {
	var out bytes.Buffer
	var tail lab.Tail
	cmd := exec.CommandContext(ctx, a.program, append(a.arguments, "--"+onlyFlag, strconv.Itoa(number))...)
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, io.MultiWriter(&tail, a.said), endPatience
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	// The program ends when its standard input is closed, at the latest when this process ends.
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start the check's process: %w", err)
	}
	defer func() { _ = input.Close() }()
	status := cmd.Run()
	var report lab.Report
	if err := json.Unmarshal(out.Bytes(), &report); err != nil {
		return nil, fmt.Errorf("%w: %s; last output: %s", errNoReport, endOf(status), tail.Text())
	}
	return &report, nil
}

// errNoReport is returned if a check's process ended without a report.
var errNoReport = errors.New("the check's process ended without a report")

// endOf describes the end of a process.
func endOf(status error) string {
	if status == nil {
		return "exit status 0"
	}
	return status.Error()
}
