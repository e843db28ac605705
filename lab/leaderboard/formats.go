package leaderboard

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/volsfu/volsfu/internal/netem"
)

const (
	// packetStep is the length of a step of a link that was recorded packet by packet. A step of a base station's
	// schedule is about a millisecond; its rate over half a second is what a controller can follow with a round trip of
	// 40 ms and an allocation per frame.
	packetStep = 500 * time.Millisecond
	// packetBits is the size of a recorded packet.
	packetBits = 1500 * 8
	// recorded is the length of a link: the first 180 s.
	recorded = 180 * time.Second
	// maxLines bounds the lines of a file.
	maxLines = 5_000_000
	// maxMember bounds the size of a member of an archive, in bytes.
	maxMember = 64 << 20
)

var errFormat = errors.New("invalid recording")

// parse parses the file of a link.
func (l *Link) parse(data []byte) (trace netem.RateTrace, err error) {
	switch l.Format {
	case FormatPackets:
		trace, err = parsePackets(data)
	case FormatGNetTrack:
		trace, err = parseGNetTrack(data, l.Member)
	case FormatRates:
		trace, err = netem.ReadRateTrace(bytes.NewReader(data))
	default:
		return trace, fmt.Errorf("%w: format %q", errFormat, l.Format)
	}
	if err != nil {
		return trace, err
	}
	// Packets in flight at the end must still arrive, so a link that ends with an outage is repeated.
	trace.Loop = trace.Steps[len(trace.Steps)-1].RateBPS == 0
	return trace, trace.Validate()
}

// parsePackets returns the rate over steps of packetStep.
func parsePackets(data []byte) (netem.RateTrace, error) {
	counts := make([]int, recorded/packetStep)
	last := -1
	for number, line := range bytes.Split(data, []byte("\n")) {
		text := strings.TrimSpace(string(line))
		if text == "" {
			continue
		}
		ms, err := strconv.Atoi(text)
		if err != nil || ms < 0 || number > maxLines {
			return netem.RateTrace{}, fmt.Errorf("%w: line %d is %q, expected a time in milliseconds", errFormat,
				number+1, text)
		}
		if step := int(time.Duration(ms) * time.Millisecond / packetStep); step < len(counts) {
			counts[step]++
			last = max(last, step)
		}
	}
	if last < 0 {
		return netem.RateTrace{}, fmt.Errorf("%w: no packets", errFormat)
	}
	trace := netem.RateTrace{Duration: time.Duration(last+1) * packetStep}
	for i, n := range counts[:last+1] {
		trace.Steps = append(trace.Steps, netem.RateStep{At: time.Duration(i) * packetStep,
			RateBPS: int(float64(n*packetBits) / packetStep.Seconds())})
	}
	return trace, nil
}

// parseGNetTrack returns the download rate of a member, from the first row of 1 Mbit/s or more on.
func parseGNetTrack(data []byte, member string) (netem.RateTrace, error) {
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return netem.RateTrace{}, fmt.Errorf("%w: %w", errFormat, err)
	}
	file, err := archive.Open(member)
	if err != nil {
		return netem.RateTrace{}, err
	}
	defer func() { _ = file.Close() }()
	reader := csv.NewReader(io.LimitReader(file, maxMember))
	rows, err := reader.ReadAll()
	if err != nil || len(rows) == 0 {
		return netem.RateTrace{}, fmt.Errorf("%w: %s: %w", errFormat, member, errors.Join(err, io.ErrUnexpectedEOF))
	}
	timeColumn, rateColumn := slices.Index(rows[0], "Timestamp"), slices.Index(rows[0], "DL_bitrate")
	if timeColumn < 0 || rateColumn < 0 {
		return netem.RateTrace{}, fmt.Errorf("%w: %s: expected the columns Timestamp and DL_bitrate", errFormat, member)
	}
	return gNetTrackRates(rows[1:], timeColumn, rateColumn)
}

func gNetTrackRates(rows [][]string, timeColumn, rateColumn int) (netem.RateTrace, error) {
	var trace netem.RateTrace
	var first time.Time
	for i, row := range rows {
		at, err := time.Parse("2006.01.02_15.04.05", row[timeColumn])
		kilobits, rateErr := strconv.ParseFloat(row[rateColumn], 64)
		if err = errors.Join(err, rateErr); err != nil || !(kilobits >= 0 && kilobits < 1e7) {
			return trace, fmt.Errorf("%w: row %d: %q, %q, expected a time and a rate in kbit/s", errFormat, i+2,
				row[timeColumn], row[rateColumn])
		}
		rate := int(math.Round(kilobits * 1e3))
		if first.IsZero() {
			if rate < netem.OutageBPS {
				continue
			}
			first = at
		}
		elapsed := at.Sub(first)
		last := len(trace.Steps) - 1
		switch {
		case elapsed >= recorded:
			trace.Duration = recorded
			return trace, nil
		case last >= 0 && elapsed == trace.Steps[last].At:
			trace.Steps[last].RateBPS = rate // of several rows of a second the last one counts
		case last >= 0 && elapsed < trace.Steps[last].At:
			return trace, fmt.Errorf("%w: row %d: the time decreases", errFormat, i+2)
		default:
			trace.Steps = append(trace.Steps, netem.RateStep{At: elapsed, RateBPS: rate})
			trace.Duration = elapsed + time.Second
		}
	}
	if len(trace.Steps) == 0 {
		return trace, fmt.Errorf("%w: no row has 1 Mbit/s", errFormat)
	}
	return trace, nil
}
