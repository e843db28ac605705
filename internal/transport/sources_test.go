package transport

import (
	"errors"
	"maps"
	"testing"
)

const answerWithTwoLines = "v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96 97\r\na=mid:0\r\na=ssrc-group:FID 11 12\r\na=ssrc:11 cname:x\r\na=ssrc:12 cname:x\r\n" +
	"m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:1\r\na=ssrc:13 cname:x\r\n" +
	"m=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:2\r\na=recvonly\r\n"

func TestStreamsByMID(t *testing.T) {
	got, err := streamsByMID(answerWithTwoLines)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Streams{"0": {SSRC: 11, Retransmission: 12}, "1": {SSRC: 13}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestStreamsByMIDRefusesMalformed(t *testing.T) {
	for _, description := range []string{
		"hello",
		"v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\ns=-\r\nt=0 0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:0\r\na=ssrc:many\r\n",
	} {
		if _, err := streamsByMID(description); !errors.Is(err, ErrDescription) {
			t.Errorf("%.30q: got %v, want ErrDescription", description, err)
		}
	}
}

func FuzzStreamsByMID(f *testing.F) {
	f.Add(answerWithTwoLines)
	f.Add("v=0\r\n")
	f.Fuzz(func(_ *testing.T, description string) {
		_, _ = streamsByMID(description)
	})
}
