package lab

import "os"

// TestDataVariable is the environment variable that names the folder of the test data.
const TestDataVariable = "VOLSFU_TESTDATA"

// besideCheckout is the folder of the test data without TestDataVariable.
const besideCheckout = "../shared/data"

// TestData returns the folder of the test data. The folder may be missing.
func TestData() string {
	if folder := os.Getenv(TestDataVariable); folder != "" {
		return folder
	}
	return besideCheckout
}
