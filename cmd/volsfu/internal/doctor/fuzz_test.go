package doctor

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/pion/stun/v4"
)

// ntpAnswer returns the answer of a server with the given time.
func ntpAnswer(request []byte, now time.Time) []byte {
	answer := make([]byte, ntpBytes)
	answer[0], answer[1] = 4<<3|ntpServer, 2
	copy(answer[24:32], request[40:48])
	binary.BigEndian.PutUint64(answer[32:], ntpTime(now))
	binary.BigEndian.PutUint64(answer[40:], ntpTime(now))
	return answer
}

// FuzzNTP: no answer panics, and an answer to another request is refused.
func FuzzNTP(f *testing.F) {
	sent := time.Unix(1_800_000_000, 0)
	request := make([]byte, ntpBytes)
	binary.BigEndian.PutUint64(request[40:], ntpTime(sent))
	f.Add(ntpAnswer(request, sent.Add(time.Hour)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, answer []byte) {
		_, uncertainty, err := ntpOffset(answer, sent, sent.Add(time.Second))
		if err == nil && (uncertainty < 0 || len(answer) < ntpBytes ||
			binary.BigEndian.Uint64(answer[24:]) != ntpTime(sent)) {
			t.Errorf("%x is accepted with ± %v", answer, uncertainty)
		}
	})
}

// FuzzMappedAddress: no datagram panics, and only answers to the request have an address.
func FuzzMappedAddress(f *testing.F) {
	transaction := [stun.TransactionIDSize]byte{1, 2, 3}
	answer, err := stun.Build(stun.NewTransactionIDSetter(transaction), stun.BindingSuccess,
		&stun.XORMappedAddress{IP: []byte{203, 0, 113, 5}, Port: 7882})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(answer.Raw)
	f.Fuzz(func(t *testing.T, data []byte) {
		mapped, ok := mappedAddress(data, transaction)
		if ok && (!mapped.Addr().IsValid() || [stun.TransactionIDSize]byte(data[8:20]) != transaction) {
			t.Errorf("%x is accepted as %v", data, mapped)
		}
	})
}
