// Package forward imports upwards and what is not for it, but for its tests.
package forward

import (
	_ "example.org/crooked/internal/sfu"
	_ "go.uber.org/zap"
)
