//go:build !linux

package hotpath

func (s *socket) sendRun() error { return s.sendSingly() }
