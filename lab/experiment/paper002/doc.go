// Package paper002 repeats the experiments of paper 002 (Thomas and Xylomenos, Ultra-low latency point cloud streaming
// in 5G): one producer and one consumer with the paper's protocol of chunks, over an emulated link like the paper's 5G
// network, and the effects of compression levels, colours, resolution and threads.
package paper002
