package netem

import (
	"math/rand/v2"
	"time"
)

// loss is the cause of a loss on the wire.
type loss uint8

const (
	lossNone loss = iota
	lossRandom
	lossBurst
)

// fate is the result of the random effects for one packet.
type fate struct {
	loss      loss
	held      bool
	duplicate bool
	delay     time.Duration // propagation and jitter
	copyDelay time.Duration // the same for its copy, if any
}

// impairments draws the fates of the packets of one link.
type impairments struct {
	bad bool // state of the Gilbert–Elliott chain

	loss, burst, jitter, reorder, duplicate, copyJitter *rand.Rand
}

func newImpairments(seed uint64) *impairments {
	return &impairments{
		loss:       newStream(seed, effectLoss),
		burst:      newStream(seed, effectBurst),
		jitter:     newStream(seed, effectJitter),
		reorder:    newStream(seed, effectReorder),
		duplicate:  newStream(seed, effectDuplicate),
		copyJitter: newStream(seed, effectCopyJitter),
	}
}

// next draws the fate of the next packet. Every effect draws from its own stream, independently of the others.
func (i *impairments) next(cfg *Config) fate {
	f := fate{delay: cfg.drawDelay(i.jitter)}
	if i.burstLoss(&cfg.Burst) {
		f.loss = lossBurst
	}
	if chance(i.loss, cfg.Loss) {
		f.loss = lossRandom
	}
	f.held = chance(i.reorder, cfg.Reorder)
	if chance(i.duplicate, cfg.Duplicate) {
		f.duplicate = true
		f.copyDelay = cfg.drawDelay(i.copyJitter)
	}
	return f
}

// burstLoss draws a loss with the probability of the state and makes one step of the Gilbert–Elliott chain.
func (i *impairments) burstLoss(b *BurstConfig) bool {
	if b.Enter == 0 && b.LossGood == 0 && !i.bad {
		return false
	}
	lossProbability, stepProbability := b.LossGood, b.Enter
	if i.bad {
		lossProbability, stepProbability = b.LossBad, b.Leave
	}
	lost := i.burst.Float64() < lossProbability
	if i.burst.Float64() < stepProbability {
		i.bad = !i.bad
	}
	return lost
}

// drawDelay draws a propagation delay, which is never negative.
func (c *Config) drawDelay(stream *rand.Rand) time.Duration {
	if c.Jitter == 0 {
		return c.Delay
	}
	var deviation float64
	if c.JitterDistribution == JitterUniform {
		deviation = 2*stream.Float64() - 1
	} else {
		deviation = stream.NormFloat64()
	}
	return max(c.Delay+time.Duration(deviation*float64(c.Jitter)), 0)
}

// leastDelay is a lower bound of the results of drawDelay.
func (c *Config) leastDelay() time.Duration {
	switch {
	case c.Jitter == 0:
		return c.Delay
	case c.JitterDistribution == JitterUniform:
		return max(c.Delay-c.Jitter, 0)
	default:
		return 0
	}
}

// chance draws once and returns true with the given probability. There is no draw if the probability is 0.
func chance(stream *rand.Rand, probability float64) bool {
	return probability > 0 && stream.Float64() < probability
}
