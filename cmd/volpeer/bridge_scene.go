package main

import (
	"math"

	"github.com/volsfu/volsfu/pkg/client"
	"github.com/volsfu/volsfu/pkg/signal"
)

// look tells the server where the connector's program looks from, if it has said.
func (m *meeting) look() {
	if v := m.downward.view; v != nil {
		m.session.SetViewpoint(client.Viewpoint{Position: v.Position, Orientation: v.Orientation, FOV: v.FOV * math.Pi / 180, Aspect: v.Aspect})
	}
}

// show tells where the connector's object stands, if it has said and the object is published.
func (s *span) show(session *client.Session) {
	s.mu.Lock()
	pose := s.pose
	s.mu.Unlock()
	publisher := session.Publisher(cloudName)
	if pose == nil || publisher == nil {
		return
	}
	publisher.SetPose(client.Pose{Position: pose.Position, Orientation: pose.Orientation, Scale: pose.Scale, Boxes: pose.Boxes})
}

// setPose takes where the connector's object stands.
func (s *span) setPose(pose *signal.Pose) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pose = pose
}
