package vr2gather

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/volsfu/volsfu/pkg/volumetric"
)

// ErrQuery reports that a peer announces itself with invalid numbers.
var ErrQuery = errors.New("malformed VR2Gather query")

// WebsocketPath is the URL path to which peers connect.
const WebsocketPath = "/websocket"

// Query is the announcement of a peer in the URL of its websocket:
// ?ntiles=N&nqualities=N&clientid=N.
type Query struct {
	// Client is the peer's id, chosen by the client: the position of its user in the session, from 1. Client is 0 if
	// the URL contains no id.
	Client uint32
	// Tiles and Qualities describe the peer's publication: Tiles × Qualities tracks of video, and
	// one of audio. A user without a point cloud announces one tile and one quality, and sends
	// nothing.
	Tiles, Qualities int
}

// ParseQuery parses the query of a websocket's URL. If the query does not contain the number of
// tiles, the result has the given number; the default for qualities is one. The error wraps
// ErrQuery if a value is not a number, is below 1, or exceeds volumetric.MaxTiles or MaxQualities.
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

// String returns the query as it follows the question mark in a URL.
func (q Query) String() string {
	return fmt.Sprintf("ntiles=%d&nqualities=%d&clientid=%d", q.Tiles, q.Qualities, q.Client)
}
