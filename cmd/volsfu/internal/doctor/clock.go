package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

// clockNotice is the difference of clocks that is reported. Tokens of other hosts are refused beyond the leeway.
const clockNotice = time.Second

// clock checks whether the clock is kept, and compares it with a server.
func (o *options) clock(ctx context.Context) []Finding {
	found := kept()
	if o.timeServer == "" {
		return found
	}
	compare := compareNTP
	if strings.Contains(o.timeServer, "://") {
		compare = compareDate
	}
	offset, uncertainty, err := compare(ctx, o.timeServer)
	if err != nil {
		return append(found, Finding{"clock", Warning, fmt.Sprintf("%s: %v", o.timeServer, err),
			"Check the name of the time server, and that the firewall lets the answer in."})
	}
	return append(found, clockFinding(offset, uncertainty, o.settings.Auth.Leeway))
}

// clockFinding judges the offset of the clock to a server.
func clockFinding(offset, uncertainty, leeway time.Duration) Finding {
	f := Finding{Subject: "clock", Status: OK, Result: fmt.Sprintf("%v from the time server, ± %v",
		offset.Round(time.Millisecond), uncertainty.Round(time.Millisecond))}
	const advice = "Let chrony or systemd-timesyncd keep the clock."
	switch beyond := offset.Abs() - uncertainty; {
	case beyond > leeway:
		f.Status, f.Advice = Failed, advice
		f.Result += fmt.Sprintf(": tokens of other hosts are refused beyond %v", leeway)
	case beyond > clockNotice:
		f.Status, f.Advice = Warning, advice
	}
	return f
}

var (
	errNoDate = errors.New("the answer has no Date")
	errNTP    = errors.New("invalid NTP answer")
)

// compareDate returns the offset of this clock to that of a web server (RFC 9110, section 6.6.1), which has a
// resolution of a second.
func compareDate(ctx context.Context, address string) (offset, uncertainty time.Duration, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return 0, 0, err
	}
	before := time.Now()
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, err
	}
	after := time.Now()
	_ = response.Body.Close()
	date, err := http.ParseTime(response.Header.Get("Date"))
	if err != nil {
		return 0, 0, errNoDate
	}
	middle := before.Add(after.Sub(before) / 2)
	return middle.Sub(date.Add(time.Second / 2)), after.Sub(before)/2 + time.Second/2, nil
}

const (
	// ntpBytes is the size of a message without extensions (RFC 5905, section 7.3).
	ntpBytes = 48
	// ntpRequest is the first byte of a request: version 4, mode 3 (client). ntpServer is the mode of an answer.
	ntpRequest, ntpServer = 4<<3 | 3, 4
)

// ntpEpoch is the origin of NTP's timestamps.
var ntpEpoch = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC)

// compareNTP returns the offset of this clock to that of an NTP server (RFC 5905, section 8).
func compareNTP(ctx context.Context, server string) (offset, uncertainty time.Duration, err error) {
	if _, _, err := net.SplitHostPort(server); err != nil {
		server = net.JoinHostPort(server, "123")
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "udp", server)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = conn.Close() }()
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return 0, 0, err
		}
	}
	request := make([]byte, ntpBytes)
	request[0] = ntpRequest
	sent := time.Now()
	binary.BigEndian.PutUint64(request[40:], ntpTime(sent))
	if _, err := conn.Write(request); err != nil {
		return 0, 0, err
	}
	answer := make([]byte, 512)
	n, err := conn.Read(answer)
	if err != nil {
		return 0, 0, err
	}
	return ntpOffset(answer[:n], sent, time.Now())
}

// ntpTime returns a time as an NTP timestamp.
func ntpTime(t time.Time) uint64 {
	since := t.Sub(ntpEpoch)
	seconds := uint64(since / time.Second)
	return seconds<<32 | uint64(since%time.Second)<<32/uint64(time.Second)
}

// timeOf returns the time of an NTP timestamp.
func timeOf(timestamp uint64) time.Time {
	return ntpEpoch.Add(time.Duration(timestamp>>32)*time.Second +
		time.Duration((timestamp&0xffffffff)*uint64(time.Second)>>32))
}

// ntpOffset parses an answer to a request of the given time.
func ntpOffset(answer []byte, sent, arrived time.Time) (offset, uncertainty time.Duration, err error) {
	if len(answer) < ntpBytes || answer[0]&7 != ntpServer || answer[1] == 0 || answer[1] > 15 ||
		binary.BigEndian.Uint64(answer[24:]) != ntpTime(sent) {
		return 0, 0, errNTP
	}
	received, replied := timeOf(binary.BigEndian.Uint64(answer[32:])), timeOf(binary.BigEndian.Uint64(answer[40:]))
	offset = (sent.Sub(received) + arrived.Sub(replied)) / 2
	return offset, max(0, (arrived.Sub(sent)-replied.Sub(received))/2), nil
}
