-- Haskell: laziness, exceptions, threads of the run time, maps.
import Control.Concurrent
import Control.Exception
import qualified Data.Map as M
main :: IO ()
main = do
  let primes = sieve [2 ..] where sieve (p : xs) = p : sieve [x | x <- xs, x `mod` p /= 0]
  print (primes !! 300)
  r <- try (evaluate (1 `div` (length (show 1) - 1))) :: IO (Either ArithException Int)
  print r
  done <- newEmptyMVar
  mapM_ (\i -> forkIO (putMVar done (i * i))) [1 .. 20 :: Int]
  xs <- mapM (const (takeMVar done)) [1 .. 20 :: Int]
  print (sum xs)
  print (M.toList (M.fromListWith (+) [(k `mod` 7, k) | k <- [1 .. 500 :: Int]]))
