package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/volsfu/volsfu/internal/config"
	"github.com/volsfu/volsfu/internal/server"
)

// originalSTUN is the STUN server that VR2Gather's original SFU asks for its public address.
const originalSTUN = "stun:stun.l.google.com:19302"

// errPorts is returned if a range of ports is invalid.
var errPorts = errors.New("invalid range of ports")

// vr2gatherFlags has the flags of VR2Gather's original SFU.
type vr2gatherFlags struct {
	address, ports, candidates string
	tiles, qualities, level    int
	stun                       bool
}

// newVR2Gather returns the command that replaces VR2Gather's original SFU: the same command line, no tokens, and no
// protocol but its dialect.
func newVR2Gather() *cobra.Command {
	return &cobra.Command{
		Use:   "vr2gather",
		Short: "Run the server in place of VR2Gather's own SFU, with the flags of that SFU",
		Long: "Run the server in place of VR2Gather's own SFU: only its dialect, without tokens, in one room. The " +
			"flags are those of that SFU, with one dash or two. To serve the dialect together with signalling v1, " +
			"run volsfu serve with vr2gather.enabled.",
		// The flags use the syntax of Go's flag package, in which -addr is one flag and not four.
		DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, arguments []string) error {
			flags, err := parseVR2Gather(arguments, cmd.OutOrStdout())
			if errors.Is(err, flag.ErrHelp) {
				return nil
			}
			if err != nil {
				return err
			}
			return serveVR2Gather(flags)
		},
	}
}

// parseVR2Gather parses the flags. If the flags ask for help, the help text is written to help.
func parseVR2Gather(arguments []string, help io.Writer) (vr2gatherFlags, error) {
	var f vr2gatherFlags
	set := flag.NewFlagSet("volsfu vr2gather", flag.ContinueOnError)
	set.SetOutput(help)
	set.StringVar(&f.address, "addr", ":8080", "address of the websocket")
	set.StringVar(&f.ports, "p", "",
		"range of UDP ports, as min:max; media uses the first free port (default: a port that the system chooses)")
	set.BoolVar(&f.stun, "s", false, "ask "+originalSTUN+" for the public address")
	set.IntVar(&f.tiles, "t", 1, "number of tiles of a client that does not announce it")
	set.IntVar(&f.qualities, "q", 1, "number of qualities of a client that does not announce it")
	set.IntVar(&f.level, "l", 1, "log level: 0 (warnings), 1 (information), 2 (debugging)")
	set.StringVar(&f.candidates, "r", "", "offer clients only the server addresses that contain this text")
	if err := set.Parse(arguments); err != nil {
		return f, err
	}
	if set.NArg() > 0 {
		return f, fmt.Errorf("unexpected argument %q", set.Arg(0))
	}
	return f, nil
}

// settings returns the configuration that corresponds to the flags, without the media port.
func (f vr2gatherFlags) settings() config.Config {
	c := config.DefaultConfig()
	// The dialect cannot announce a drain to the peers, and the orchestrator needs the port back.
	c.Server.Listen, c.Admin.Listen, c.Server.DrainTime = f.address, "", 0
	c.VR2Gather.Enabled, c.VR2Gather.RequireToken = true, false
	c.VR2Gather.Tiles, c.VR2Gather.Qualities, c.VR2Gather.Candidates = f.tiles, f.qualities, f.candidates
	// The peers use media over UDP only, and each server of an orchestrator has its own ports.
	c.Media.TCP = false
	if f.stun {
		c.Media.STUNServers = []string{originalSTUN}
	}
	c.Log.Level = []string{"warn", "info", "debug"}[min(max(f.level, 0), 2)]
	return c
}

// parsePorts parses min:max. An empty text is port 0, with which the system chooses a port.
func parsePorts(text string) (first, last int, err error) {
	if text == "" {
		return 0, 0, nil
	}
	low, high, _ := strings.Cut(text, ":")
	first, err1 := strconv.Atoi(low)
	last, err2 := strconv.Atoi(high)
	if err1 != nil || err2 != nil || first < 1 || last > 1<<16-1 || first > last {
		return 0, 0, fmt.Errorf("%w: -p is %q, expected min:max, within 1:65535", errPorts, text)
	}
	return first, last, nil
}

// serveVR2Gather runs the server on the first free port of the range.
func serveVR2Gather(f vr2gatherFlags) error {
	settings := f.settings()
	var last int
	var err error
	if settings.Media.Port, last, err = parsePorts(f.ports); err != nil {
		return err
	}
	if err := config.NewLoader(&settings).Validate(); err != nil {
		return err
	}
	log, logFile, err := server.NewLog(settings.Log)
	if err != nil {
		return err
	}
	defer func() { _ = log.Sync() }()
	return server.Run(server.Options{Config: settings, Version: version, Log: log, LogFile: logFile, LastMediaPort: last,
		VR2GatherOnly: true})
}
