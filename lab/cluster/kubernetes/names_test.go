package kubernetes

import (
	"encoding/json"
	"net/netip"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

const slicesText = `{"items": [{"metadata": {"namespace": "volsfu", "labels": {"kubernetes.io/service-name": "nodes"}},
	"endpoints": [
		{"addresses": ["10.8.0.1"], "hostname": "volsfu-0", "conditions": {"ready": true}},
		{"addresses": ["10.8.0.2"], "hostname": "volsfu-1"},
		{"addresses": ["10.8.0.3"], "hostname": "volsfu-2", "conditions": {"ready": false}},
		{"addresses": ["no address"]}
	]}]}`

// records returns the records of slicesText.
func records(t testing.TB) map[string][]netip.Addr {
	t.Helper()
	var list List[EndpointSlice]
	if err := json.Unmarshal([]byte(slicesText), &list); err != nil {
		t.Fatal(err)
	}
	return recordsOf(list.Items)
}

// query returns a query of a name.
func query(t testing.TB, name string, kind dnsmessage.Type) []byte {
	t.Helper()
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 7}, Questions: []dnsmessage.Question{
		{Name: dnsmessage.MustNewName(name), Type: kind, Class: dnsmessage.ClassINET}}}
	packed, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// TestAnswer: a service has the addresses of its pods that are ready, a pod its own, and other names do not exist.
func TestAnswer(t *testing.T) {
	all := records(t)
	for _, test := range []struct {
		name    string
		kind    dnsmessage.Type
		answers int
		code    dnsmessage.RCode
	}{
		{"nodes.volsfu.svc.cluster.local.", dnsmessage.TypeA, 2, dnsmessage.RCodeSuccess},
		{"Volsfu-1.nodes.volsfu.svc.cluster.local.", dnsmessage.TypeA, 1, dnsmessage.RCodeSuccess},
		{"volsfu-1.nodes.volsfu.svc.cluster.local.", dnsmessage.TypeAAAA, 0, dnsmessage.RCodeSuccess},
		{"volsfu-2.nodes.volsfu.svc.cluster.local.", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
		{"nodes.volsfu.svc.", dnsmessage.TypeA, 0, dnsmessage.RCodeNameError},
	} {
		packed, err := answer(query(t, test.name, test.kind), all)
		if err != nil {
			t.Fatal(err)
		}
		var reply dnsmessage.Message
		if err := reply.Unpack(packed); err != nil {
			t.Fatal(err)
		}
		if reply.ID != 7 || !reply.Response || reply.RCode != test.code || len(reply.Answers) != test.answers {
			t.Errorf("%s: %+v, expected %v with %d answers", test.name, reply, test.code, test.answers)
		}
	}
}

// FuzzAnswer: any query gets a reply or an error.
func FuzzAnswer(f *testing.F) {
	all := records(f)
	f.Add(query(f, "nodes.volsfu.svc.cluster.local.", dnsmessage.TypeA))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		packed, err := answer(data, all)
		if err != nil {
			return
		}
		var reply dnsmessage.Message
		if err := reply.Unpack(packed); err != nil {
			t.Errorf("the reply to %x: %v", data, err)
		}
	})
}
