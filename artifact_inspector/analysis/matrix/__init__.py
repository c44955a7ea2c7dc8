"""Matrix instructions, compared with the dots that they implement."""
