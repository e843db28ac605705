//go:build !linux

package mediasocket

func (s *Socket) sendRun() error { return s.sendSingly() }
