package leaderboard

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/environment"
)

// The extent of a board: seeds of each case, and with --quick one seed and a part of each link.
const (
	fullSeeds    = 3
	quickSeconds = 45
)

// Command returns the command cc of vollab bench. The version is for the page.
func Command(version string) *cobra.Command {
	var o Options
	var quick, asJSON bool
	var write, packets string
	cmd := &cobra.Command{
		Use:   "cc",
		Short: "Compare congestion controllers: the test cases of RFC 8867 and recorded links, in virtual time",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer cancel()
			if quick {
				o.Seeds, o.Seconds = 1, quickSeconds
			}
			if o.Seeds < 1 || o.Seeds > 100 {
				return fmt.Errorf("--seeds: %d, expected 1 to 100", o.Seeds)
			}
			o.Progress = lab.NewProgress(cmd.ErrOrStderr())
			if packets != "" {
				o.Packets = packetLog(packets)
			}
			board, err := run(ctx, o)
			if err != nil {
				return err
			}
			board.Version, board.Command = version, commandLine(o, quick, write)
			switch {
			case write != "":
				return board.Write(write)
			case asJSON:
				return board.WriteJSON(cmd.OutOrStdout())
			}
			text, err := board.Page()
			if err == nil {
				_, err = cmd.OutOrStdout().Write(text)
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&quick, "quick", false, "one seed and the first 45 s of each link")
	f.IntVar(&o.Seeds, "seeds", fullSeeds, "number of runs of each case, with different seeds")
	f.StringSliceVar(&o.Only, "entries", nil, "names of the entries to run; by default all")
	f.StringSliceVar(&o.Cases, "cases", nil, "names of links and sections of RFC 8867 to run; by default all")
	f.StringVar(&o.Folders.TestData, "data", lab.TestData(), "folder of the test data")
	f.StringVar(&o.Folders.Fetched, "links", fetchedFolder(), "folder of the files of vollab data fetch")
	f.StringVar(&write, "write", "",
		"folder for the page, its content (JSON) and its plots, in place of printing the page")
	f.StringVar(&packets, "packets", "",
		"folder for a log of the packets at the bottleneck of each run (CSV, compressed)")
	f.BoolVar(&asJSON, "json", false, "print the content as JSON")
	return cmd
}

func run(ctx context.Context, o Options) (*Board, error) {
	described, err := environment.Read(ctx, o.Folders.TestData)
	if err != nil {
		return nil, err
	}
	board, err := Run(ctx, o)
	if err != nil {
		return nil, err
	}
	board.Environment = described
	return board, nil
}

// commandLine returns the command that repeats a board, without folders of data.
func commandLine(o Options, quick bool, write string) string {
	parts := []string{"vollab bench cc"}
	if quick {
		parts = append(parts, "--quick")
	} else if o.Seeds != fullSeeds {
		parts = append(parts, fmt.Sprintf("--seeds %d", o.Seeds))
	}
	for _, list := range []struct {
		flag  string
		names []string
	}{{"--entries", o.Only}, {"--cases", o.Cases}} {
		if len(list.names) > 0 {
			parts = append(parts, list.flag, strings.Join(list.names, ","))
		}
	}
	if write != "" {
		parts = append(parts, "--write docs")
	}
	return strings.Join(parts, " ")
}

// packetLog returns Options.Packets for logs in a folder.
func packetLog(folder string) func(string, string, uint64) (func(control.PacketFate), func() error, error) {
	return func(entry, name string, seed uint64) (func(control.PacketFate), func() error, error) {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, nil, err
		}
		file, err := os.Create(filepath.Join(folder, fmt.Sprintf("%s_%s_%d.csv.gz", entry, name, seed)))
		if err != nil {
			return nil, nil, err
		}
		compressed := gzip.NewWriter(file)
		buffer := bufio.NewWriter(compressed)
		_, _ = buffer.WriteString("t_s,flow,bytes,queue_ms,dropped\n")
		packet := func(p control.PacketFate) {
			dropped := 0
			if p.Dropped {
				dropped = 1
			}
			_, _ = fmt.Fprintf(buffer, "%.6f,%d,%d,%.3f,%d\n", p.Arrived.Seconds(), p.Flow, p.Size,
				lab.Milliseconds(p.Waited), dropped)
		}
		end := func() error { return errors.Join(buffer.Flush(), compressed.Close(), file.Close()) }
		return packet, end, nil
	}
}
