package vr2gather

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrQuery says that a peer announces itself with numbers that nobody can have.
var ErrQuery = errors.New("malformed VR2Gather query")

// WebsocketPath is the path that peers connect to.
const WebsocketPath = "/websocket"

// Query is how a peer announces itself in the address of its websocket: ?ntiles=N&nqualities=N&clientid=N.
type Query struct {
	// Client is the peer's id, which the client chose: the position of its user in the session, from 1. It is 0 where the address has none.
	Client uint32
	// Tiles and Qualities are what it publishes: Tiles × Qualities tracks of video, and one of audio. A user without a point cloud announces one of
	// each and sends nothing.
	Tiles, Qualities int
}

// ParseQuery reads the query of a websocket's address; tiles is what holds where it does not tell them, and one quality likewise. Errors wrap
// ErrQuery: what is not a number, no tile or quality, and more than volumetric.MaxTiles and MaxQualities.
func ParseQuery(values url.Values, tiles int) (Query, error) {
	q := Query{Tiles: tiles, Qualities: 1}
	if text := values.Get("clientid"); text != "" {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return Query{}, fmt.Errorf("%w: clientid is %.20q, expected a number of 32 bits", ErrQuery, text)
		}
		q.Client = uint32(n)
	}
	for _, count := range []struct {
		name  string
		limit int
		into  *int
	}{{"ntiles", volumetric.MaxTiles, &q.Tiles}, {"nqualities", volumetric.MaxQualities, &q.Qualities}} {
		text := values.Get(count.name)
		if text == "" {
			continue
		}
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > count.limit {
			return Query{}, fmt.Errorf("%w: %s is %.20q, expected 1 to %d", ErrQuery, count.name, text, count.limit)
		}
		*count.into = n
	}
	return q, nil
}

// String is the query as it stands in an address behind the question mark.
func (q Query) String() string {
	return fmt.Sprintf("ntiles=%d&nqualities=%d&clientid=%d", q.Tiles, q.Qualities, q.Client)
}
