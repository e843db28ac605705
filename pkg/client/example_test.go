package client_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/pion/rtp/codecs"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/codec"
	"github.com/volsfu/volsfu/pkg/pointcloud"
	"github.com/volsfu/volsfu/pkg/signal"
	"github.com/volsfu/volsfu/pkg/switching"
	"github.com/volsfu/volsfu/pkg/volumetric"
)

// A client joins a room under a unique name and lists the participants. serverURL is the address of a server, such as
// ws://localhost:8080.
func ExampleJoin() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	session, err := client.Join(ctx, client.Config{
		URL:      serverURL(),
		Room:     "lobby",
		Identity: "ada",
		Receive:  true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	fmt.Printf("%s is in room %q with %d others\n", session.Identity(), session.Room(), len(session.Participants()))
	// Output: ada is in room "lobby" with 0 others
}

// A refusal of the server is a *signal.Error with a stable code. Other errors come from the network or from the
// package.
func ExampleJoin_refused() {
	ctx := context.Background()
	first, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "narrow", Identity: "ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer first.Close()

	_, err = client.Join(ctx, client.Config{URL: serverURL(), Room: "narrow", Identity: "ada"})
	var refused *signal.Error
	switch {
	case errors.As(err, &refused) && refused.Code == signal.CodeIdentityTaken:
		fmt.Println("choose another name")
	case errors.As(err, &refused):
		fmt.Println("refused:", refused.Code, refused.Message)
	case errors.Is(err, client.ErrConfig):
		fmt.Println("mend the configuration:", err)
	case err != nil:
		fmt.Println("try again later:", err)
	}
	// Output: choose another name
}

// A publisher describes its object on joining, and then writes each captured frame: every tile at every quality, with
// the same number.
func ExamplePublisher_WriteFrame() {
	ctx := context.Background()
	body := volumetric.Publication{
		Name:      "body",
		Kind:      volumetric.KindVideo,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVolumetric, ClockRate: 90000},
		FrameRate: 30,
		Tiles: []volumetric.Tile{
			{Label: "front", Box: volumetric.BoundingBox{Min: [3]float32{-0.5, 0, 0}, Max: [3]float32{0.5, 1.8, 0.4}}},
			{Label: "back", Box: volumetric.BoundingBox{Min: [3]float32{-0.5, 0, -0.4}, Max: [3]float32{0.5, 1.8, 0}}},
		},
		Qualities: []volumetric.QualityLevel{{Name: "low", Bitrate: 1_500_000}, {Name: "high", Bitrate: 3_000_000}},
	}
	session, err := client.Join(ctx, client.Config{
		URL:          serverURL(),
		Room:         "studio",
		Identity:     "ada",
		Publications: []volumetric.Publication{body},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	publisher := session.Publisher("body")
	camera := time.NewTicker(time.Second / 30)
	defer camera.Stop()
	for number := uint32(0); number < 10; {
		capture := <-camera.C
		written := false
		for tile := range body.Tiles {
			for quality := range body.Qualities {
				taken, err := publisher.WriteFrame(tile, volumetric.Quality(quality), client.OutgoingFrame{
					Number:  number,
					Capture: capture,
					Codec:   codec.Raw.FourCC(),
					Data:    someTile(quality),
				})
				switch {
				case taken:
					written = true
				case err != nil && !errors.Is(err, client.ErrNotConnected): // not yet, or not at present
					fmt.Println(err)
					return
				}
			}
		}
		if written {
			number++ // numbers have no gaps: a frame that was not sent has no number
		}
	}
	fmt.Println("ten frames are on their way")
	// Output: ten frames are on their way
}

// Frames arrive complete, tile by tile. Each has the codec to decode it with.
func ExampleSession_Frames() {
	company := invite("gallery") // grace, who publishes a body of two tiles
	defer company.leave()

	ctx := context.Background()
	session, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "gallery", Identity: "ada", Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	decoders := make(map[volumetric.FourCC]codec.Decoder)
	points := make(map[volumetric.TileRef]int)
	var cloud pointcloud.Cloud
	for frame := range session.Frames() {
		decoder := decoders[frame.Codec]
		if decoder == nil {
			c, err := codec.ByFourCC(frame.Codec)
			if err != nil {
				fmt.Println(err)
				return
			}
			decoder = c.NewDecoder()
			decoders[frame.Codec] = decoder
		}
		if err := decoder.Decode(&cloud, frame.Data); err != nil {
			fmt.Println(err)
			continue
		}
		latency := session.ServerTime(time.Now()).Sub(frame.Capture)
		if latency < 0 {
			fmt.Println("decoded before it was captured")
		}
		if frame.Track.Quality == 0 {
			continue // The lowest quality comes first, and the best quality once the link is known to carry it.
		}
		if points[frame.Track.TileRef] = cloud.Len(); len(points) == 2 {
			break
		}
	}
	for tile, n := range points {
		fmt.Printf("%v: %d points\n", tile, n)
	}
	// Unordered output:
	// grace/body/0: 2000 points
	// grace/body/1: 2000 points
}

// A receiver chooses a quality for a whole publication and for single tiles. The event Sending reports that a choice
// has taken effect.
func ExampleSession_SetQuality() {
	company := invite("theatre") // grace, who publishes a body of two tiles
	defer company.leave()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	session, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "theatre", Identity: "ada", Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	body := volumetric.PublicationRef{Participant: "grace", Publication: "body"}
	back := 1
	err = session.SetQuality(ctx,
		// All tiles at the lowest quality, except the back, which is off.
		signal.Choice{PublicationRef: body, Quality: signal.Only(0)},
		signal.Choice{PublicationRef: body, Tile: &back, Quality: signal.Only(volumetric.QualityOff)},
	)
	if err != nil {
		fmt.Println(err)
		return
	}
	sent := map[int]volumetric.Quality{0: volumetric.QualityOff}
	for sent[0] != 0 || sent[1] != volumetric.QualityOff {
		select {
		case event := <-session.Events():
			if e, ok := event.(client.Sending); ok {
				sent[e.Track.Tile] = e.Quality
			}
		case <-ctx.Done():
			fmt.Println(ctx.Err())
			return
		}
	}
	fmt.Println("front:", sent[0], "back:", sent[1])
	// Output: front: 0 back: -1
}

// Statistics are counts since the beginning of the session, one entry for each tile that was received.
func ExampleSession_Stats() {
	company := invite("laboratory") // grace, who publishes a body of two tiles
	defer company.leave()

	ctx := context.Background()
	session, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "laboratory", Identity: "ada",
		Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	for came := make(map[int]int); came[0] < 20 || came[1] < 20; { // of each tile
		frame, open := <-session.Frames()
		if !open {
			fmt.Println(session.Err())
			return
		}
		came[frame.Track.Tile]++
	}
	for _, tile := range session.Stats() {
		bad := tile.Undecodable + tile.Missing + tile.Overflowed + tile.DroppedByServer
		fmt.Printf("%v came: %v, more than half of it useless: %v\n", tile.Track.TileRef, tile.Complete > 0,
			bad > tile.Expected/2)
	}
	// Output:
	// grace/body/0 came: true, more than half of it useless: false
	// grace/body/1 came: true, more than half of it useless: false
}

// Audio, and every codec that does not use payload v1, is sent as RTP payloads of its own format. Each call sends one
// frame: one packet of Opus, or all packets of a picture.
func ExamplePublisher_WritePackets() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	listener, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "call", Identity: "grace", Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer listener.Close()

	voice := volumetric.Publication{
		Name:      "voice",
		Kind:      volumetric.KindAudio,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEOpus, ClockRate: 48000, Channels: 2},
		Tiles:     make([]volumetric.Tile, 1),
		Qualities: make([]volumetric.QualityLevel, 1),
	}
	session, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "call", Identity: "ada"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	publisher, err := session.Publish(ctx, voice) // at any time, as on joining
	if err != nil {
		fmt.Println(err)
		return
	}
	silence := []byte{0xf8, 0xff, 0xfe} // 20 ms of Opus
	microphone := time.NewTicker(20 * time.Millisecond)
	defer microphone.Stop()
	for {
		select {
		case capture := <-microphone.C:
			_, err := publisher.WritePackets(0, 0, capture, [][]byte{silence})
			if err != nil && !errors.Is(err, client.ErrNotConnected) {
				fmt.Println(err)
				return
			}
		case packet := <-listener.Packets():
			fmt.Printf("%d bytes of %s from %s\n", len(packet.Payload), packet.Codec.MIMEType, packet.Track.Participant)
			return
		case <-ctx.Done():
			fmt.Println(ctx.Err())
			return
		}
	}
	// Output: 3 bytes of audio/opus from ada
}

// encodeVP8 stands for an encoder: it returns a frame of VP8 that begins like a real one.
func encodeVP8(key bool) []byte {
	if key {
		return []byte{0x10, 2, 0, 0x9d, 1, 0x2a, 0x40, 1, 0xb4, 0, 0}
	}
	return []byte{0x31, 2, 0, 0}
}

// A webcam is a publication with several encodings as qualities. Receivers can begin only with key frames, which the
// server requests by the event KeyFrameWanted.
func ExamplePublisher_WritePackets_picture() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	watcher, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "meeting", Identity: "grace", Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer watcher.Close()
	webcam := volumetric.Publication{
		Name:      "webcam",
		Kind:      volumetric.KindVideo,
		Mode:      volumetric.ModeAlternatives,
		Codec:     volumetric.Codec{MIMEType: volumetric.MIMEVP8, ClockRate: 90000},
		FrameRate: 30,
		Picture:   &volumetric.Picture{Source: volumetric.SourceCamera},
		Tiles:     []volumetric.Tile{{Box: volumetric.DefaultPanel(volumetric.SourceCamera)}},
		Qualities: []volumetric.QualityLevel{
			{Name: "180p", Bitrate: 150_000, Width: 320, Height: 180, FrameRate: 15},
			{Name: "720p", Bitrate: 1_700_000, Width: 1280, Height: 720},
		},
	}
	session, err := client.Join(ctx, client.Config{
		URL: serverURL(), Room: "meeting", Identity: "ada", Publications: []volumetric.Publication{webcam},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	publisher := session.Publisher("webcam")
	camera := time.NewTicker(time.Second / 30)
	defer camera.Stop()
	packetise := []codecs.VP8Payloader{{EnablePictureID: true}, {EnablePictureID: true}} // one for each quality
	key := []bool{true, true}
	for {
		select {
		case event := <-session.Events():
			if wanted, ok := event.(client.KeyFrameWanted); ok {
				key[wanted.Quality] = true
			}
		case capture := <-camera.C:
			for q := range packetise {
				quality := volumetric.Quality(q)
				if !publisher.Wanted(0, quality) {
					key[q] = true // frames are missing when the quality is wanted again
					continue
				}
				payloads := packetise[q].Payload(1160, encodeVP8(key[q]))
				taken, err := publisher.WritePackets(0, quality, capture, payloads)
				if err != nil && !errors.Is(err, client.ErrNotConnected) {
					fmt.Println(err)
					return
				}
				key[q] = !taken
			}
		case packet := <-watcher.Packets():
			begins := switching.KeyFrame(packet.Codec.MIMEType, packet.Payload)
			fmt.Printf("%s begins with a key frame: %t\n", packet.Codec.MIMEType, begins)
			return
		case <-ctx.Done():
			fmt.Println(ctx.Err())
			return
		}
	}
	// Output: video/VP8 begins with a key frame: true
}

// If its websocket breaks, a session resumes without the program's help. The program receives events, and has to act
// only when Done is closed.
func ExampleSession_Events() {
	wire := newWire() // carries the websocket, until it is cut
	defer wire.remove()

	session, err := client.Join(context.Background(),
		client.Config{URL: wire.url(), Room: "balcony", Identity: "ada", Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	for event := range session.Events() {
		switch e := event.(type) {
		case client.Interrupted:
			fmt.Println("the websocket broke")
		case client.Resumed:
			fmt.Println("the session goes on")
			return // the program would continue to read
		case client.Closing:
			fmt.Println("the server stops in", e.Grace)
		case client.Published:
			fmt.Println(e.Participant, "publishes", e.Publication.Name)
		case client.Connected:
			fmt.Println("media flows")
			wire.cut() // its beginning
		}
	}
	if err := session.Err(); !errors.Is(err, client.ErrClosed) {
		fmt.Println("join again:", err)
	}
	// Output:
	// media flows
	// the websocket broke
	// the session goes on
}

// A publisher asks before it encodes: a tile at a quality may have no receiver, or the uplink may not carry it.
func ExamplePublisher_Wanted() {
	ctx := context.Background()
	session, err := client.Join(ctx, client.Config{
		URL:          serverURL(),
		Room:         "workshop",
		Identity:     "ada",
		Publications: []volumetric.Publication{body()},
		MaxUplink:    50_000_000,       // bit/s; the default is 1 Gbit/s
		MinUplink:    50_000_000,       // the rate that the network is known to carry; the default is 500 kbit/s
		QueueBudget:  10 * time.Second, // the longest wait of a frame; the default is one frame interval
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	publisher := session.Publisher("body")
	camera := time.NewTicker(time.Second / 30)
	defer camera.Stop()
	number := uint32(0)
	for range 30 {
		capture := <-camera.C
		written := false
		for tile := range 2 {
			for quality := range 2 {
				if !publisher.Wanted(tile, volumetric.Quality(quality)) {
					continue // the next capture may be wanted
				}
				frame := client.OutgoingFrame{Number: number, Capture: capture, Codec: codec.Raw.FourCC(),
					Data: someTile(quality)}
				taken, _ := publisher.WriteFrame(tile, volumetric.Quality(quality), frame)
				written = written || taken
			}
		}
		if written {
			number++
		}
	}
	uplink := session.Uplink()
	fmt.Println("tracks given up:", len(uplink.GaveUp), "frames left out:", uplink.Dropped)
	// Output: tracks given up: 0 frames left out: 0
}

// A receiver reports its viewpoint as often as it likes, and limits the rate that it is sent. The server sends visible
// objects in the best quality.
func ExampleSession_SetViewpoint() {
	company := invite("planetarium") // grace, who publishes a body of two tiles
	defer company.leave()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	session, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "planetarium", Identity: "ada",
		Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	if err := session.SetLimits(ctx, 30_000_000, 0); err != nil { // bit/s
		fmt.Println(err)
		return
	}
	display := time.NewTicker(time.Second / 60)
	defer display.Stop()
	for {
		select {
		case <-display.C:
			session.SetViewpoint(client.Viewpoint{
				Position:    [3]float64{0.2, 1.6, 2.5},
				Orientation: [4]float64{0, 0, 0, 1}, // looks along -z, +y is up
				FOV:         math.Pi / 3,            // vertical
				Aspect:      16. / 9,
			})
		case event := <-session.Events():
			if e, ok := event.(client.Bandwidth); ok {
				fmt.Println("the server knows what the link carries:", e.Estimate > 0)
				return
			}
		case <-ctx.Done():
			fmt.Println(ctx.Err())
			return
		}
	}
	// Output: the server knows what the link carries: true
}

// A publisher sets the pose of its object in the room, and the other participants receive it.
func ExamplePublisher_SetPose() {
	company := invite("stage") // grace, who publishes a body of two tiles
	defer company.leave()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	session, err := client.Join(ctx, client.Config{URL: serverURL(), Room: "stage", Identity: "ada", Receive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()

	grace := company.session.Publisher("body")
	grace.SetPose(client.Pose{
		Position:    [3]float64{1, 0, -2},
		Orientation: [4]float64{0, math.Sqrt2 / 2, 0, math.Sqrt2 / 2}, // a quarter turn to the left
		Priority:    2,                                                // twice the weight of other objects
	})
	for {
		select {
		case event := <-session.Events():
			if e, ok := event.(client.PoseChanged); ok {
				fmt.Println(e.Publication, "stands at", e.Pose.Position)
				return
			}
		case <-ctx.Done():
			fmt.Println(ctx.Err())
			return
		}
	}
	// Output: grace/body stands at [1 0 -2]
}

// A participant sends chat messages and the position of its hand, and another one reads them.
func ExampleSession_SendData() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	join := func(identity string) (*client.Session, error) {
		return client.Join(ctx, client.Config{
			URL: serverURL(), Room: "messages", Identity: identity, MessageChannel: true,
		})
	}
	ada, err := join("ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ada.Close()
	session, err := join("grace")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer session.Close()
	if err := session.SetAttributes(ctx, "", map[string]string{"name": "Grace Hopper"}); err != nil {
		fmt.Println(err)
		return
	}
	err = session.SendData(ctx, client.Data{Topic: "chat", Text: "Can you hear me?"})
	if err != nil {
		fmt.Println(err)
		return
	}
	err = session.SendData(ctx, client.Data{Topic: "hand", Lossy: true, Binary: []byte{1, 2, 3}, To: []string{"ada"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for m := range ada.Data() {
		if m.Topic == "chat" {
			fmt.Printf("%s: %s\n", m.From, m.Text)
			break
		}
	}
	// Output: grace: Can you hear me?
}
