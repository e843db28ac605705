package forward

import _ "example.org/crooked/cmd/volsfu"
