package server

import (
	"github.com/volsfu/volsfu/internal/metrics"
	"github.com/volsfu/volsfu/internal/webhook"
)

// startWebhooks starts to post the events of rooms to the configured endpoints, if there are any.
func (s *startup) startWebhooks() error {
	c := s.config.Webhooks
	if len(c.URLs) == 0 {
		return nil
	}
	var err error
	if s.webhooks, err = webhook.Start(c, s.options.Version, s.log); err != nil {
		return err
	}
	if err := s.files.add("keys of webhooks", []string{c.KeyFile}, s.webhooks.Reload); err != nil {
		return err
	}
	s.config.Rooms.Events = s.webhooks
	return metrics.Register(s.registry, webhookReadings(s.webhooks.Stats)...)
}

// webhookReadings returns the metrics of webhooks.
func webhookReadings(stats func() webhook.Stats) []metrics.Reading {
	return []metrics.Reading{
		metrics.Counted(metrics.WebhookEvents, "delivered", func() uint64 { return stats().Delivered }),
		metrics.Counted(metrics.WebhookEvents, "full", func() uint64 { return stats().Full }),
		metrics.Counted(metrics.WebhookEvents, "expired", func() uint64 { return stats().Expired }),
		metrics.Counted(metrics.WebhookDeliveries, "accepted", func() uint64 { return stats().Accepted }),
		metrics.Counted(metrics.WebhookDeliveries, "rejected", func() uint64 { return stats().Rejected }),
		metrics.Counted(metrics.WebhookDeliveries, "failed", func() uint64 { return stats().Failed }),
		{Name: metrics.WebhookQueue, Value: func() float64 { return float64(stats().Queued) }},
	}
}
