// Package docs embeds the pages of this folder, which api-server serves.
package docs

import "embed"

// Files are the pages and their pictures.
//
//go:embed *.md *.svg benchmarks pictures/console-*.webp pictures/lti-launch.webp console/students.webp console/roster-runs-one.webp console/choose.webp console/lms.webp console/lms-one-marks.webp console/my-courses.webp console/my-courses-ar.webp reference runbooks soak
var Files embed.FS
