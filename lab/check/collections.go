package check

import (
	"os"
	"slices"

	"github.com/spf13/pflag"

	"github.com/volsfu/volsfu/lab"
	"github.com/volsfu/volsfu/lab/adaptation"
	"github.com/volsfu/volsfu/lab/clients"
	"github.com/volsfu/volsfu/lab/cluster"
	"github.com/volsfu/volsfu/lab/control"
	"github.com/volsfu/volsfu/lab/duplication"
	"github.com/volsfu/volsfu/lab/experiment"
	"github.com/volsfu/volsfu/lab/experiment/claims"
	"github.com/volsfu/volsfu/lab/experiment/library"
	"github.com/volsfu/volsfu/lab/firstlight"
	"github.com/volsfu/volsfu/lab/hardening"
	"github.com/volsfu/volsfu/lab/hotpath"
	"github.com/volsfu/volsfu/lab/interop"
	"github.com/volsfu/volsfu/lab/l4s"
	"github.com/volsfu/volsfu/lab/layers"
	"github.com/volsfu/volsfu/lab/pipeline"
	"github.com/volsfu/volsfu/lab/raster"
	"github.com/volsfu/volsfu/lab/topology/fidelity"
	"github.com/volsfu/volsfu/lab/trust"
	"github.com/volsfu/volsfu/lab/viewing"
)

// collection is a named set of checks.
type collection struct {
	name, short string
	// bind adds the flags of the checks, and returns the function that makes the checks after parsing.
	bind func(*pflag.FlagSet) checklist
	// punctual keeps the processors awake: emulated links are late on sleeping processors.
	punctual bool
}

// checklist creates the checks of a collection.
type checklist func(lab.Progress) []lab.Check

// collections returns all collections of checks. The version is for reports.
func collections(version string) []collection {
	return []collection{
		{name: "first-light",
			short: "A conference of point clouds: frames, switches, losses, rooms, joining and leaving",
			bind:  fixed(firstlight.Checks)},
		{name: "hot-path", short: "The cost of forwarding, compared with Pion's own media path and the machine's limit",
			bind: fixed(hotpath.Checks)},
		{name: "congestion",
			short: "Rates, queues and repair that fit the path: links, falls, losses, wireless traces, " +
				"competitors; uplinks", bind: fixed(congestion), punctual: true},
		{name: "interop",
			short: "Clients that others have made: VR2Gather's peer and connector, Unity, C; in a checkout with Go, " +
				"whose tests it runs", bind: fixed(interop.Checks)},
		{name: "capture",
			short: "From a depth camera to coded tiles and back: Draco from Go, colours, descriptions, RealSense, " +
				"memory; partly in a checkout with Go", bind: capture},
		{name: "l4s",
			short: "L4S: utilisation and queues of L4S bottlenecks, shares beside Prague and Cubic, fallbacks, " +
				"rooms; end to end as root", bind: scalable(version)},
		{name: "lab",
			short: "The laboratory itself: experiments and their reports, paper 001's latencies, emulated networks, " +
				"layers of latency; as root", bind: laboratory(version), punctual: true},
		{
			name: "hardening",
			short: "Attacks on a server in network namespaces, while two participants count their frames; requires " +
				"root, and for some checks a checkout with Go and Node",
			bind: hardened,
		},
		{name: "duplication",
			short: "Packets on several paths: identity, cost, losses, the experiments of paper 003, failures; as root",
			bind:  duplicated(version), punctual: true},
		{name: "trust",
			short: "Reach and trust: networks, encryption, rooms, recordings, attacks, fuzzed inputs; as root, for " +
				"some checks in a checkout with Go", bind: trusted, punctual: true},
		{name: "clients",
			short: "Clients where people are: every receiver decodes every publisher's streams, programs for Windows " +
				"and macOS; in a checkout with Go and a C compiler", bind: everywhere},
		{name: "cluster",
			short: "Rooms over several nodes: frames, trunks, failures, upgrades, partitions, cost; as root",
			bind:  clustered},
		{name: "rgbd", short: "The codec of rasters: bits, errors and times beside Draco", bind: rasters},
		{name: "viewer",
			short: "The pages for browsers, in Chromium: complete frames and their latency, memory, size; in a " +
				"checkout with Go and Node", bind: viewer},
	}
}

// fixed returns checks without flags.
func fixed(checks checklist) func(*pflag.FlagSet) checklist {
	return func(*pflag.FlagSet) checklist { return checks }
}

func viewer(f *pflag.FlagSet) checklist {
	o := viewing.DefaultOptions()
	f.DurationVar(&o.Endurance, "endurance", o.Endurance,
		"time for which two participants and the memory of the tab are watched in the second check")
	return func(progress lab.Progress) []lab.Check { return viewing.Checks(o, progress) }
}

func hardened(f *pflag.FlagSet) checklist {
	o := hardening.DefaultOptions()
	f.StringVar(&o.Server, "server", "", "the server's program; by default volsfu beside this program")
	f.DurationVar(&o.Flood, "flood", o.Flood, "duration of each rate attack")
	f.DurationVar(&o.After, "after", o.After, "time for which the participants are watched after an attack")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of the mutated records")
	return func(progress lab.Progress) []lab.Check { return hardening.Checks(o, progress) }
}

// trusted returns the checks of reach and trust.
func trusted(f *pflag.FlagSet) checklist {
	o := trust.DefaultOptions()
	f.StringVar(&o.Programs, "programs", "", "folder of volsfu and the other programs; by default that of this program")
	f.StringVar(&o.Data, "data", os.Getenv(lab.TestDataVariable),
		"folder of the test data; empty selects synthetic content")
	f.Int64Var(&o.Fuzz.Inputs, "fuzz-inputs", o.Fuzz.Inputs, "number of fuzzed inputs of all runs together")
	f.StringVar(&o.Fuzz.State, "fuzz-state", "", "file with the counts of fuzzed inputs, which a later run continues")
	f.DurationVar(&o.Fuzz.Time, "fuzz-time", 0, "maximum duration of fuzzing in this run; 0 is no maximum")
	f.DurationVar(&o.Fuzz.Slice, "fuzz-slice", o.Fuzz.Slice, "time for each fuzz test before the next package")
	return func(progress lab.Progress) []lab.Check { return trust.Checks(o, progress) }
}

// everywhere returns the checks of clients.
func everywhere(f *pflag.FlagSet) checklist {
	o := clients.DefaultOptions()
	f.StringVar(&o.Programs, "programs", "", "folder of volsfu and volpeer; by default that of this program")
	return func(progress lab.Progress) []lab.Check { return clients.Checks(o, progress) }
}

// clustered returns the checks of rooms over several nodes.
func clustered(f *pflag.FlagSet) checklist {
	var o cluster.Options
	f.StringVar(&o.Programs, "programs", "", "folder of volsfu; by default that of this program")
	f.StringVar(&o.Previous, "previous", "", "volsfu of the previous release, for the rolling upgrade")
	f.StringVar(&o.Before, "before", "", "volsfu without the code of clusters, to compare with")
	f.StringVar(&o.Kubernetes, "kubernetes", ".tools/bin", "folder of the programs that make kubernetes builds")
	return func(progress lab.Progress) []lab.Check { return cluster.Checks(o, progress) }
}

// rasters returns the checks of the codec rgbd.
func rasters(f *pflag.FlagSet) checklist {
	o := raster.DefaultOptions()
	f.StringVar(&o.Data, "data", o.Data, "folder of the test data")
	f.IntVar(&o.Frames, "frames", o.Frames, "number of frames of the seated person, at most 48")
	f.IntVar(&o.Compared, "compared", o.Compared, "number of frames whose errors are measured, a few seconds each")
	f.IntVar(&o.Repeats, "repeats", o.Repeats, "number of codings of each frame; times are the least")
	return func(progress lab.Progress) []lab.Check { return raster.Checks(o, progress) }
}

func capture(f *pflag.FlagSet) checklist {
	o := pipeline.DefaultOptions()
	f.DurationVar(&o.Endurance, "endurance", o.Endurance, "time for which memory is watched in the last check")
	return func(progress lab.Progress) []lab.Check { return pipeline.Checks(o, progress) }
}

// scalable returns the checks of L4S.
func scalable(version string) func(*pflag.FlagSet) checklist {
	return func(f *pflag.FlagSet) checklist {
		var o l4s.Options
		f.BoolVar(&o.Live, "live", true, "also measure end to end, as root, for about 40 minutes")
		f.StringVar(&o.Scream, "scream", "", "folder of SCReAM's programs, which are compared on the same links")
		f.StringVar(&o.UDPPrague, "udp-prague", "",
			"folder of udp_prague's programs, which are compared on the same links")
		pictures := claims.Options{Version: version}
		f.StringVar(&pictures.Data, "data", os.Getenv(lab.TestDataVariable),
			"folder of the test data for the check of pictures; empty selects the synthetic figure")
		return func(progress lab.Progress) []lab.Check {
			pictures.Library = experiments()
			return append(l4s.Checks(o, progress), l4s.EndToEnd(o, claims.NewPictures(pictures, progress)),
				l4s.EndToEnd(o, l4s.NewExternal(o, progress)), l4s.EndToEnd(o, l4s.NewChromium(progress)))
		}
	}
}

// duplicated returns the checks of packet duplication.
func duplicated(version string) func(*pflag.FlagSet) checklist {
	return func(f *pflag.FlagSet) checklist {
		o := claims.Options{Version: version}
		f.StringVar(&o.Data, "data", os.Getenv(lab.TestDataVariable),
			"folder of the test data for the checks of rooms; empty selects the synthetic figure")
		f.StringVar(&o.Programs, "programs", "",
			"folder of volnet and the other programs; by default that of this program")
		return func(progress lab.Progress) []lab.Check {
			o.Library = experiments()
			return duplication.Checks(o, progress)
		}
	}
}

// experiments returns all experiments.
func experiments() *experiment.Library {
	all, err := library.New()
	if err != nil {
		panic("the embedded experiments cannot be read: " + err.Error())
	}
	return all
}

func laboratory(version string) func(*pflag.FlagSet) checklist {
	return func(f *pflag.FlagSet) checklist {
		o := claims.Options{Version: version}
		f.StringVar(&o.Data, "data", os.Getenv(lab.TestDataVariable),
			"folder of the test data; empty selects the synthetic figure")
		f.StringVar(&o.Folder, "out", "", "folder for the reports of the first check; empty removes them")
		seed := f.Uint64("seed", 0, "seed of the losses in the third check, which reports it; 0 takes it from the time")
		return func(progress lab.Progress) []lab.Check {
			o.Library = experiments()
			return slices.Concat(claims.Checks(o, progress), []lab.Check{fidelity.New(progress, *seed)},
				layers.Checks(progress), []lab.Check{hotpath.NewTracing(progress)})
		}
	}
}

// congestion returns the checks in virtual time, those of the uplink, and the first ones again end to end.
func congestion(progress lab.Progress) []lab.Check {
	return slices.Concat(control.Checks(progress), adaptation.Checks(progress), control.LiveChecks(progress))
}
