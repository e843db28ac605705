// Package link implements vollab link: the command starts emulated networks, runs commands on their hosts, and changes
// running networks. A network belongs to the process that started it. Other processes reach the network through package
// service.
package link

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/netem/router"
	"github.com/volsfu/volsfu/lab/topology"
	"github.com/volsfu/volsfu/lab/topology/service"
)

// errLate is returned if a network was too late for valid measurements.
var errLate = errors.New("the run is not valid")

// ExitStatus is the exit status of a command that was run for the user. vollab exits with the same status, without a
// message.
type ExitStatus int

// Error implements error.
func (s ExitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

// Command returns the command vollab link.
func Command() *cobra.Command {
	link := &cobra.Command{
		Use:   "link",
		Short: "Emulate a network between processes: hosts that are network namespaces, and links between them",
		Long: `Emulate a network between processes: hosts that are network namespaces, and links between them with
delay, loss, a rate and a queue.

A file in YAML describes the hosts, the links and the paths between hosts. Root is needed to start a network
and to run commands in it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	link.AddCommand(newUp(), newRun(), newExec(), newList(), newStatistics(), newSet(), newRestart(), newDown(),
		newCheck())
	return link
}

// nameFlag adds the flag for the name of a network.
func nameFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", service.DefaultName, "name of the network")
}

// start starts the network of a file.
func start(ctx context.Context, file string, seed uint64) (*topology.Network, error) {
	t, err := topology.ReadFile(file)
	if err != nil {
		return nil, err
	}
	if seed != 0 {
		t.Seed = seed
	}
	n, err := topology.Start(ctx, t)
	if errors.Is(err, router.ErrPrivileges) {
		return nil,
			fmt.Errorf("%w\nrun it as root; without root, vollab control and vollab check congestion have the same "+
				"links and queues inside one process", err)
	}
	return n, err
}

func newUp() *cobra.Command {
	var name string
	var seed uint64
	var detach bool
	cmd := &cobra.Command{
		Use:   "up FILE",
		Short: "Start the network of a file, until the command is interrupted or the network is taken down",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			if detach {
				return detachUp(cmd.OutOrStdout(), arguments[0], name, seed)
			}
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			return up(ctx, cmd.OutOrStdout(), arguments[0], name, seed)
		},
	}
	nameFlag(cmd, &name)
	cmd.Flags().Uint64Var(&seed, "seed", 0, "seed of random decisions; 0 means the seed of the file")
	cmd.Flags().BoolVar(&detach, "detach", false, "return when the network is up, and keep the network running")
	return cmd
}

// up runs a network until the context ends or another process ends it.
func up(ctx context.Context, out io.Writer, file, name string, seed uint64) (err error) {
	n, err := start(ctx, file, seed)
	if err != nil {
		return err
	}
	s, err := service.Serve(n, name, file)
	if err != nil {
		return errors.Join(err, n.Close())
	}
	// A waiting client is answered after everything is removed.
	defer func() { err = errors.Join(err, n.Close(), s.Close()) }()
	d, err := service.Find(name)
	if err != nil {
		return err
	}
	writeHosts(out, *d)
	fmt.Fprintf(out, readyLine+"\n", name)
	select {
	case <-ctx.Done():
	case <-s.Ending():
	}
	return nil
}

// readyLine is the line with which up reports that the network is ready.
const readyLine = "network %s is up"

// detachUp starts another process with the network, and returns once the network is ready.
func detachUp(out io.Writer, file, name string, seed uint64) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("start the network: %w", err)
	}
	said, writer, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start the network: %w", err)
	}
	cmd := exec.Command(self, "link", "up", file, "--name", name, "--seed", fmt.Sprint(seed))
	cmd.Stdout, cmd.Stderr = writer, writer
	leaveTerminal(cmd)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the network: %w", err)
	}
	_ = writer.Close()
	defer func() { _ = said.Close() }()
	var text strings.Builder
	buffer := make([]byte, 4096)
	for ready := fmt.Sprintf(readyLine, name) + "\n"; !strings.HasSuffix(text.String(), ready); {
		count, err := said.Read(buffer)
		text.Write(buffer[:count])
		if err != nil {
			_ = cmd.Wait()
			return fmt.Errorf("start the network: %s", strings.TrimPrefix(strings.TrimSpace(text.String()), "vollab: "))
		}
	}
	_, err = io.WriteString(out, text.String())
	return err
}

// writeHosts lists the hosts of a network.
func writeHosts(out io.Writer, d service.Description) {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "host\taddresses")
	for _, h := range d.Hosts {
		fmt.Fprintf(table, "%s\t%s\n", h.Name, strings.Join(h.Addresses, " "))
	}
	_ = table.Flush()
}

func newRun() *cobra.Command {
	var host, statistics string
	var seed uint64
	var strict bool
	cmd := &cobra.Command{
		Use:   "run FILE -- COMMAND [ARGUMENT...]",
		Short: "Start the network of a file while a command runs",
		Long: `Start the network of a file, run a command, and report at the end of the command the
statistics of packets and whether the network was in time.

The command runs on a host of the network, or on this machine, where it may run other commands on the hosts with vollab
link exec.`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, arguments []string) error {
			n, err := start(cmd.Context(), arguments[0], seed)
			if err != nil {
				return err
			}
			defer func() { _ = n.Close() }()
			name := fmt.Sprintf("run-%d", os.Getpid())
			s, err := service.Serve(n, name, arguments[0])
			if err != nil {
				return err
			}
			defer func() { _ = s.Close() }()
			command := exec.CommandContext(cmd.Context(), arguments[1], arguments[2:]...)
			if host != "" {
				command = n.Command(cmd.Context(), host, arguments[1], arguments[2:]...)
			} else {
				command.Env = append(os.Environ(), nameVariable+"="+name)
			}
			status := foreground(cmd, command, nil)
			if err := writeStatistics(cmd.ErrOrStderr(), n, statistics); err != nil {
				return err
			}
			if v := n.Validity(); strict && status == nil && !v.Valid {
				return fmt.Errorf("%w: %s", errLate, v.Reason)
			}
			return status
		},
	}
	f := cmd.Flags()
	f.StringVar(&host, "host", "", "host on which the command runs; the default is this machine")
	f.StringVar(&statistics, "statistics", "",
		"write the statistics to this file as JSON, instead of to the standard error as tables")
	f.Uint64Var(&seed, "seed", 0, "seed of random decisions; 0 means the seed of the file")
	f.BoolVar(&strict, "strict", false, "fail if the network was too late for the run to be valid")
	return cmd
}

// nameVariable is the environment variable with the name of the network for vollab link exec and similar commands.
const nameVariable = "VOLLAB_LINK"

// writeStatistics writes the statistics of a network.
func writeStatistics(console io.Writer, n *topology.Network, file string) (err error) {
	statistics := n.Statistics()
	summary := statistics.Summary()
	if file == "" {
		return summary.WriteText(console)
	}
	out, err := os.Create(file)
	if err != nil {
		return fmt.Errorf("write statistics: %w", err)
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	return summary.WriteJSON(out)
}

// foreground runs a command that has the terminal, until the command ends. If ended is closed earlier, foreground kills
// the command. The command's status becomes an ExitStatus.
func foreground(cmd *cobra.Command, command *exec.Cmd, ended <-chan struct{}) error {
	command.Stdin, command.Stdout, command.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	// An interruption from the terminal reaches the command, too; the command's reaction counts.
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	defer signal.Stop(signals)
	if err := command.Start(); err != nil {
		return fmt.Errorf("run %s: %w", command.Path, err)
	}
	done := make(chan error, 1)
	go func() { done <- command.Wait() }()
	for {
		select {
		case s := <-signals:
			if s == syscall.SIGTERM {
				_ = command.Process.Signal(s)
			}
		case <-ended:
			_ = command.Process.Kill()
			<-done
			return fmt.Errorf("%w: the network has ended", service.ErrNetwork)
		case err := <-done:
			var exit *exec.ExitError
			if errors.As(err, &exit) {
				return statusOf(exit)
			}
			return err
		}
	}
}

// statusOf returns the exit status as a shell does: 128 plus the signal for a command that was killed.
func statusOf(exit *exec.ExitError) ExitStatus {
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return ExitStatus(128 + int(status.Signal()))
	}
	return ExitStatus(max(exit.ExitCode(), 1))
}
