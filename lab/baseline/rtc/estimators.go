package rtc

import (
	"github.com/pion/interceptor/pkg/cc"
	pion "github.com/pion/interceptor/pkg/gcc"

	patched "github.com/volsfu/volsfu/lab/baseline/rtc/gcc"
)

// Estimator creates the estimator of a publisher, which starts at the least bit rate. Rates are in bits per second.
type Estimator func(least, most int) (cc.BandwidthEstimator, error)

// PionEstimator creates Pion's own estimator.
func PionEstimator(least, most int) (cc.BandwidthEstimator, error) {
	return pion.NewSendSideBWE(pion.SendSideBWEInitialBitrate(least), pion.SendSideBWEMinBitrate(least),
		pion.SendSideBWEMaxBitrate(most))
}

// PatchedEstimator creates Pion's estimator with the corrections of package gcc.
func PatchedEstimator(least, most int) (cc.BandwidthEstimator, error) {
	return patched.NewSendSideBWE(patched.SendSideBWEInitialBitrate(least), patched.SendSideBWEMinBitrate(least),
		patched.SendSideBWEMaxBitrate(most))
}
