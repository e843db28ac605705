package lab

import "os"

// TestDataVariable is the environment variable that names the folder of the test data.
const TestDataVariable = "VOLSFU_TESTDATA"

// besideCheckout is where the test data is unless TestDataVariable says otherwise.
const besideCheckout = "../shared/data"

// TestData is the folder of the test data. It need not be there.
func TestData() string {
	if folder := os.Getenv(TestDataVariable); folder != "" {
		return folder
	}
	return besideCheckout
}
